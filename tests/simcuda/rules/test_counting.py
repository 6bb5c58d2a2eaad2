from typing import Any

import torch

from simcuda import SimulatedCuda

unique: Any = torch.unique  # torch has no annotations here
unique_consecutive: Any = torch.unique_consecutive


def test_unique_values_are_sorted_and_counted(gpu: SimulatedCuda) -> None:
    """100 floats, 10 different: one wait for a count of 8 bytes.

    The sorted copy, and the values, which keep room for all: 2 x 400 bytes, and the count.
    """
    x = torch.arange(100, device="cuda") % 10 * 0.5
    with gpu.measure() as m:
        unique(x)
    assert (1, 1, 8, 808) == (m.syncs, m.d2h, m.d2h_bytes, m.peak_bytes)


def test_the_inverse_of_unique_sorts_positions_too(gpu: SimulatedCuda) -> None:
    """While 100 pairs of 4 + 8 bytes are sorted there are two copies of each, and room for all in the sort.

    3 x 1200 bytes less the values, which are not there yet (400), beside the count: 3208; one wait.
    """
    x = torch.arange(100, device="cuda") % 10 * 0.5
    with gpu.measure() as m:
        unique(x, return_inverse=True)
    assert (1, 3208) == (m.syncs, m.peak_bytes)


def test_counts_and_inverse_together_are_one_wait(gpu: SimulatedCuda) -> None:
    """Sort, find (2), and for the inverse positions, compare, running sums (2), scatter: 8 kernels."""
    x = torch.arange(100, device="cuda") % 10 * 0.5
    with gpu.measure() as m:
        unique(x, return_inverse=True, return_counts=True)
    # As without counts, which keep room for 100 of 8 bytes.
    assert (1, 8, 3208 + 800) == (m.syncs, m.launches, m.peak_bytes)


def test_unique_truth_values_are_counted_without_sorting(gpu: SimulatedCuda) -> None:
    """How many are true is one 32-bit number."""
    x = torch.arange(100, device="cuda") > 50
    with gpu.measure() as m:
        unique(x)
    assert (1, 4, 2) == (m.syncs, m.d2h_bytes, m.launches)


def test_nothing_unique_in_nothing(gpu: SimulatedCuda) -> None:
    """Without elements nothing is read."""
    x = torch.zeros(0, device="cuda")
    with gpu.measure() as m:
        unique(x)
        unique_consecutive(x)
    assert (0, 0) == (m.syncs, m.launches)


def test_runs_are_found_without_sorting(gpu: SimulatedCuda) -> None:
    """Room for all 100 values of 4 bytes and the count: 408 bytes; one wait."""
    x = torch.arange(100, device="cuda") // 10 * 0.5
    with gpu.measure() as m:
        unique_consecutive(x)
    assert (1, 2, 408) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        unique_consecutive(x, return_inverse=True)
    # The inverse of 800 bytes, and what differs from its neighbour, 4 bytes each: compare, running sums (2).
    assert (1, 5, 408 + 800 + 400) == (m.syncs, m.launches, m.peak_bytes)


def test_unique_rows_are_unknown(gpu: SimulatedCuda) -> None:
    """Rows are compared by a library that waits several times; nobody worked out how often."""
    x = torch.ones(4, 3, device="cuda")
    with gpu.measure() as m:
        unique(x, dim=0)
        unique_consecutive(x, dim=0)
    assert ("aten.unique_consecutive.default", "aten.unique_dim.default") == m.unknown


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
