"""Sizes are those of float32, 4 bytes, and of indices, 8 bytes."""

import pytest
import torch

from simcuda import SimulatedCuda


def test_a_short_row_is_sorted_in_place(gpu: SimulatedCuda) -> None:
    """100 values: values copied twice (by sort and by its kernel's caller), indices made and copied, sorted.

    2 kernels (arange, sort), copies of 400 + 800 + 400 bytes, as an H100 counted.
    Results of 400 + 800 and a range of 800 make 2000 bytes.
    """
    x = torch.rand(100, device="cuda")
    with gpu.measure() as m:
        x.sort()
    assert (0, 2, 3, 1600, 3, 2000) == (m.syncs, m.launches, m.d2d, m.d2d_bytes, m.allocations, m.peak_bytes)
    assert () == m.approximate


def test_several_short_rows_spread_the_indices_by_a_kernel(gpu: SimulatedCuda) -> None:
    """10 rows of 20: the range of 160 bytes is repeated by a kernel, so 3 kernels; two copies of 800 bytes.

    Results of 800 + 1600 bytes and the range make 2560.
    """
    x = torch.rand(10, 20, device="cuda")
    with gpu.measure() as m:
        x.argsort(dim=1)
    assert (3, 2, 1600, 2560) == (m.launches, m.d2d, m.d2d_bytes, m.peak_bytes)


def test_a_long_row_needs_room_for_all_pairs_again(gpu: SimulatedCuda) -> None:
    """5000 values: results 20000 + 40000, positions 40000, pairs of 12 bytes 60000: 160000 bytes, no wait."""
    x = torch.rand(5000, device="cuda")
    with gpu.measure() as m:
        x.sort()
    assert (0, 2, 160_000, 60_000) == (m.syncs, m.launches, m.peak_bytes, m.largest_allocation)
    assert ("aten.sort.default",) == m.approximate


def test_many_long_rows_are_sorted_in_segments(gpu: SimulatedCuda) -> None:
    """128 rows of 5000, 640000 elements: results and positions 12 + 8 bytes each, pairs 12 bytes each."""
    x = torch.rand(128, 5000, device="cuda")
    with gpu.measure() as m:
        x.sort(dim=1)
    assert (2, 640_000 * 32) == (m.launches, m.peak_bytes)


def test_nothing_to_sort_costs_nothing(gpu: SimulatedCuda) -> None:
    """Neither a tensor without elements nor a single number is sorted by a kernel; the latter is copied."""
    empty, single = torch.rand(0, device="cuda"), torch.rand((), device="cuda")
    with gpu.measure() as m:
        empty.sort()
    assert (0, 0) == (m.launches, m.peak_bytes)
    with gpu.measure() as m:
        single.sort()
    assert (1, 1) == (m.launches, m.d2d)


def test_the_median_of_all_sorts_all(gpu: SimulatedCuda) -> None:
    """100 values: a sort (2 kernels), whether the last is NaN, and the choice; no wait."""
    x = torch.rand(100, device="cuda")
    with gpu.measure() as m:
        x.median()
    assert (0, 4) == (m.syncs, m.launches)
    with gpu.measure() as m:
        torch.rand(5000, device="cuda").median()
    # Input, sorted pairs, positions and the pairs of the radix sort: 4 + 12 + 8 + 12 bytes each; the result.
    assert 5000 * 36 + 4 == m.peak_bytes


def test_a_rank_along_a_dimension_is_one_kernel(gpu: SimulatedCuda) -> None:
    """The k-th value and the median along a dimension are selected, if need be from a contiguous copy."""
    x = torch.rand(4, 5, device="cuda")
    with gpu.measure() as m:
        x.kthvalue(2, dim=1)
        x.median(dim=1)
    assert (0, 2) == (m.syncs, m.launches)
    with gpu.measure() as m:
        x.t().median(dim=1)
    # The copy of 80 bytes beside 5 values and 5 indices.
    assert (2, 80 + 5 * 12) == (m.launches, m.peak_bytes)


def test_topk_selects_then_sorts(gpu: SimulatedCuda) -> None:
    """The 2 largest of 100 are selected by one kernel and sorted by another, where that is asked for."""
    x = torch.rand(100, device="cuda")
    with gpu.measure() as m:
        x.topk(2)
    assert (0, 2, 24) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        x.topk(2, sorted=False)
    assert 1 == m.launches
    with gpu.measure() as m:
        x.topk(0)
    assert 0 == m.launches


def test_running_sums_along_a_dimension_are_one_kernel(gpu: SimulatedCuda) -> None:
    """Only the result of 80 bytes is allocated; integers are widened in a copy of 160 bytes first."""
    x, n = torch.rand(4, 5, device="cuda"), torch.ones(4, 5, dtype=torch.int32, device="cuda")
    with gpu.measure() as m:
        x.cumsum(0)
    assert (0, 1, 80, ()) == (m.syncs, m.launches, m.peak_bytes, m.approximate)
    with gpu.measure() as m:
        n.cumsum(1)
    assert (2, 320) == (m.launches, m.peak_bytes)


def test_a_running_sum_of_one_row_is_left_to_cub(gpu: SimulatedCuda) -> None:
    """A single row takes two kernels at least, a single number is copied."""
    with gpu.measure() as m:
        torch.ones(10, device="cuda").cumsum(0)
    assert (3, ("aten.cumsum.default",)) == (m.launches, m.approximate)
    single = torch.ones((), device="cuda")
    with gpu.measure() as m:
        single.cumsum(0)
    assert (0, 1) == (m.launches, m.d2d)


def test_running_maxima_are_one_kernel(gpu: SimulatedCuda) -> None:
    """Values and indices of 20 elements are all that is allocated: 240 bytes."""
    x = torch.rand(4, 5, device="cuda")
    with gpu.measure() as m:
        x.cummax(0)
        x[:0].cummax(0)
    assert (1, 240) == (m.launches, m.peak_bytes)


def test_the_most_frequent_value_of_many_is_unknown(gpu: SimulatedCuda) -> None:
    """More than 2048 values are sorted by a library that waits, and nobody worked out how often."""
    x = torch.rand(2, 2049, device="cuda")
    with gpu.measure() as m:
        x.mode()
    assert ("aten.mode.default",) == m.unknown


def test_the_most_frequent_value_is_found_by_one_kernel(gpu: SimulatedCuda) -> None:
    """Up to 2048 values along the dimension: a kernel, and a copy where that dimension is not innermost."""
    x = torch.rand(20, 10, device="cuda")
    with gpu.measure() as m:
        x.mode(1)
    # 20 values and indices.
    assert (0, 1, 20 * (4 + 8), ()) == (m.syncs, m.launches, m.peak_bytes, m.unknown)
    with gpu.measure() as m:
        x.mode(0)
    # 10 values and indices, and the 200 elements with the columns innermost.
    assert (0, 2, 10 * (4 + 8) + 800) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        x[:, :1].contiguous().mode(1)
    # The 20 values gathered by a kernel, then copied as 80 bytes, the indices filled.
    assert (2, 1, 80) == (m.launches, m.d2d, m.d2d_bytes)
    with gpu.measure() as m:
        x[:0].mode(1)
    assert 0 == m.launches


@pytest.mark.parametrize(("count", "kernels"), [(1, 1), (2, 2)])
def test_the_largest_of_each_row_is_in_order(gpu: SimulatedCuda, count: int, kernels: int) -> None:
    """One value of each row is selected, and not sorted."""
    x = torch.rand(3, 4, device="cuda")
    with gpu.measure() as m:
        x.topk(count)
    assert kernels == m.launches
