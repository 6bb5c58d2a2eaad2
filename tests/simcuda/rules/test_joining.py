"""What joining tensors costs on the simulated device."""

from __future__ import annotations

import pytest
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


def joined(*inputs: torch.Tensor, dim: int = 0) -> tuple[int, int]:
    """The kernels and the copies by which these are joined."""
    with simcuda.device() as gpu:
        there = [each.to("cuda") for each in inputs]
        with gpu.measure() as counted:
            torch.cat(there, dim)
    return counted.launches, counted.d2d


@pytest.mark.parametrize(
    ("count", "step", "expected"),
    [(2, 1, 1), (128, 1, 1), (129, 1, 2), (64, 2, 1), (65, 2, 2), (129, 2, 3)],
)
def test_a_kernel_takes_inputs_in_batches(count: int, step: int, expected: int) -> None:
    """A kernel takes 128 contiguous inputs, or 64 where one is not contiguous: 129 / 64 rounds up to 3."""
    with simcuda.device() as gpu:
        inputs = [torch.ones(14, device="cuda")[::step] for _ in range(count)]
        with gpu.measure() as counted:
            torch.cat(inputs)
    assert (expected, 0) == (counted.launches, counted.d2d)


def test_leading_batches_of_empty_inputs_are_skipped() -> None:
    """128 empty inputs, then 10 with elements, then 128 empty: the first batch of three is skipped."""
    empty = [torch.ones(0)] * 128
    assert (2, 0) == joined(*empty, *[torch.ones(5)] * 10, *empty)
    assert (0, 0) == joined(*[torch.ones(0)] * 300)


def test_what_cannot_be_batched_is_copied() -> None:
    """Bytes that follow each other need no kernel; each scattered input is one."""
    one, two, five = (torch.ones(2, *[1] * dims, 3) for dims in (1, 2, 3))
    assert (0, 1) == joined(one, dim=1)
    assert (1, 0) == joined(two, two, dim=1)
    # More dimensions than the kernel for batches handles: along the first they follow each other.
    assert (0, 2) == joined(five, five)
    assert (2, 0) == joined(five, five, dim=1)
    assert (2, 1) == joined(torch.ones(5).int(), torch.ones(6), torch.ones(7).int())
