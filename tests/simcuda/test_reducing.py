"""What a reduction allocates beside its result on the simulated device."""

from __future__ import annotations

import pytest
import torch

import simcuda


@pytest.mark.parametrize(
    ("dtype", "asked", "widened"),
    [
        # A sum is taken in the result's type: int64 for what counts, 8 bytes an element.
        (torch.bool, None, 8000),
        (torch.int32, None, 8000),
        (torch.float32, torch.float64, 8000),
        (torch.int64, None, 0),
        (torch.float32, None, 0),
        # Half and bfloat16 add up in single precision as they are read.
        (torch.float16, torch.float32, 0),
        (torch.bfloat16, None, 0),
        # No such luck for double precision.
        (torch.float16, torch.float64, 8000),
    ],
)
def test_a_sum_in_another_type_copies_its_input_first(
    dtype: torch.dtype, asked: torch.dtype | None, widened: int
) -> None:
    """A kernel reads one type, so 1000 elements of another are converted before they are added up."""
    with simcuda.device() as gpu:
        values = torch.ones(1000, dtype=dtype, device="cuda")
        with gpu.measure() as counted:
            total = values.sum(dtype=asked)
    # One kernel adds up; converting takes one more. The result is alive beside the converted copy.
    assert 1 + bool(widened) == counted.launches
    assert widened + total.element_size() == counted.peak_bytes


def test_asking_whether_any_element_is_set_converts_nothing() -> None:
    """The answer is a bool whatever the input's type, and the kernel reads the input as it is."""
    with simcuda.device() as gpu:
        values = torch.ones(1000, device="cuda")
        with gpu.measure() as counted:
            values.any()
    assert 1 == counted.launches
    assert 1 == counted.peak_bytes


def test_pinned_copies_keep_their_layout() -> None:
    """A transposed tensor is still transposed once it is pinned."""
    with simcuda.device():
        assert (1, 3) == torch.ones(2, 3).t().pin_memory().stride()
