from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

unique: Any = torch.unique  # torch has no annotations here
unique_consecutive: Any = torch.unique_consecutive


@pytest.mark.parametrize(
    ("find", "values", "nbytes"),
    [
        # A count of 64 bits, or of 32 for truth values.
        (unique, torch.arange(100) % 10 * 0.5, 8),
        (unique, torch.arange(100) > 50, 4),
        (unique_consecutive, torch.arange(100) // 10 * 0.5, 8),
        (unique_consecutive, torch.arange(100) > 50, 8),
    ],
)
def test_how_many_are_unique_is_read_once(gpu: SimulatedCuda, find: Any, values: Any, nbytes: int) -> None:
    """Inverse and counts are made of the same result."""
    x = values.cuda()
    for options in ({}, {"return_inverse": True, "return_counts": True}):
        with gpu.measure() as m:
            find(x, **options)
        assert (1, 1, nbytes) == (m.syncs, m.d2h, m.d2h_bytes)


def test_nothing_unique_in_nothing(gpu: SimulatedCuda) -> None:
    """Without elements nothing is read."""
    x = torch.zeros(0, device="cuda")
    with gpu.measure() as m:
        unique(x)
        unique_consecutive(x)
    assert (0, 0) == (m.syncs, m.launches)


def test_repeats_are_added_up_and_checked(gpu: SimulatedCuda) -> None:
    """The total of 8 bytes and one truth value are read, unless the size is given."""
    repeats = torch.ones(10, dtype=torch.long, device="cuda")
    with gpu.measure() as m:
        torch.repeat_interleave(repeats)
    # Result 80, running sums 80, comparisons 10, the answer 1.
    assert (2, 9, 5, 171) == (m.syncs, m.d2h_bytes, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        torch.repeat_interleave(repeats, output_size=10)
    assert (0, 3, 160) == (m.syncs, m.launches, m.peak_bytes)


def test_a_known_number_of_positions_needs_no_wait(gpu: SimulatedCuda) -> None:
    """Four kernels, a fifth for two dimensions; a sum for the one block of values, 4 + 8 bytes."""
    x = torch.ones(4, 5, device="cuda")
    with gpu.measure() as m:
        torch.nonzero_static(x, size=3)
    assert (0, 5, 3 * 2 * 8 + 12) == (m.syncs, m.launches, m.peak_bytes)
    assert () == m.approximate
    with gpu.measure() as m:
        torch.nonzero_static(x.view(20), size=3)
        torch.nonzero_static(x, size=0)
    assert 4 == m.launches


def test_positions_in_large_tensors_are_counted_by_block(gpu: SimulatedCuda) -> None:
    """2 x 132 x 8192 + 1 floats: 265 tiles for 132 multiprocessors are 3 rounds, so 89 blocks of 12 bytes."""
    x = torch.ones(2 * 132 * 8192 + 1, device="cuda")
    with gpu.measure() as m:
        torch.nonzero_static(x, size=1)
    assert 8 + 89 * 12 == m.peak_bytes


def test_what_is_not_contiguous_is_copied_first(gpu: SimulatedCuda) -> None:
    """A transposed input of 80 bytes is copied by a kernel before its values are sorted."""
    x = torch.ones(4, 5, device="cuda")
    with gpu.measure() as plain:
        unique(x)
    with gpu.measure() as transposed:
        unique(x.t())
    assert (1, 80) == (transposed.launches - plain.launches, transposed.peak_bytes - plain.peak_bytes)
