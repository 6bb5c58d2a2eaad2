"""What joining tensors costs on the simulated device."""

from __future__ import annotations

import torch

import simcuda


def test_inputs_of_one_type_are_joined_by_a_kernel() -> None:
    """A kernel takes up to 128 inputs, and nothing is copied besides."""
    with simcuda.device() as gpu:
        inputs = [torch.ones((), device="cuda") for _ in range(130)]
        with gpu.measure() as counted:
            torch.stack(inputs)
    assert (2, 0) == (counted.launches, counted.d2d)


def test_inputs_of_several_types_are_copied_one_by_one() -> None:
    """Those of the result's type are copied as bytes, the others by a kernel that converts."""
    with simcuda.device() as gpu:
        inputs = [torch.ones(5, device="cuda"), torch.ones(3, dtype=torch.bfloat16, device="cuda")]
        with gpu.measure() as counted:
            torch.cat([*inputs, torch.empty(0, device="cuda")])
    # 5 float32 elements as bytes; 3 bfloat16 ones converted; an empty input takes nothing.
    assert (1, 1, 20) == (counted.launches, counted.d2d, counted.d2d_bytes)


def test_a_single_input_is_copied_as_bytes() -> None:
    """There is nothing to join, so the copy needs no kernel."""
    with simcuda.device() as gpu:
        values = torch.ones(5, device="cuda")
        with gpu.measure() as counted:
            torch.cat([values])
    assert (0, 1, 20) == (counted.launches, counted.d2d, counted.d2d_bytes)
