"""The numbers are for 132 multiprocessors of 2048 threads, where 4 x 132 = 528 blocks of 512 threads fit."""

import pytest

from simcuda.costs.call import FREE, OpCost
from simcuda.costs.reductions import Arithmetic, reduce_all, reduction
from simcuda.profile import PROFILES

H200 = PROFILES["h200-cuda13"]
A100 = PROFILES["a100-cuda12"]
FLOATS = Arithmetic("sum", 4)


@pytest.mark.parametrize(
    ("elements", "workspaces"),
    [
        (1, ()),
        # 512 threads: 255 x 512 = 130560 elements are 255 a thread, one more makes it 256 and worth sharing.
        (130_560, ()),
        # 256 a thread shared out 16 to a thread: 16 blocks x 4 bytes, and one counter of 4 bytes.
        (130_561, (64, 4)),
        (131_072, (64, 4)),
        # 527 x 16 x 512 = 4317184 elements need 527 blocks at 16 a thread; all 528 from one element more on.
        (4_317_184, (2108, 4)),
        (4_317_185, (2112, 4)),
        # 528 blocks x 512 threads x 256 values = 69206016 elements; beyond, blocks follow the elements.
        (69_206_016, (2112, 4)),
        (69_206_017, (2116, 4)),
    ],
)
def test_a_full_reduction_of_floats(elements: int, workspaces: tuple[int, ...]) -> None:
    """Large reductions meet in global memory: one kernel, a buffer, and counters."""
    assert OpCost(1, workspaces=workspaces) == reduce_all(elements, FLOATS, H200)


@pytest.mark.parametrize(
    ("family", "itemsize", "half", "partial"),
    [
        ("sum", 8, False, 8),
        ("sum", 2, True, 4),
        ("norm", 2, True, 4),
        ("extremum", 2, True, 2),
        # An H200 allocated 736 bytes for 184 blocks of floats.
        ("logical", 4, False, 4),
        ("aminmax", 4, False, 8),
        ("argument", 4, False, 16),
        ("moment", 4, False, 16),
        ("moment", 2, True, 16),
        ("moment", 8, False, 32),
    ],
)
def test_partial_results_are_as_wide_as_the_arithmetic_needs(
    family: str, itemsize: int, half: bool, partial: int
) -> None:
    """130561 elements take 16 blocks of 512 threads whatever the type, each with one partial result."""
    how = Arithmetic(family, itemsize, half)
    assert (16 * partial, 4) == reduce_all(130_561, how, H200).workspaces


def test_complex_doubles_use_smaller_blocks() -> None:
    """256 threads: shared from 255 x 256 + 1 = 65281 elements on, by 16 blocks x 16 bytes."""
    how = Arithmetic("sum", 16)
    assert () == reduce_all(65_280, how, H200).workspaces
    assert (256, 4) == reduce_all(65_281, how, H200).workspaces


def test_the_blocks_follow_the_profile() -> None:
    """108 multiprocessors hold 432 blocks: 432 x 4 bytes."""
    assert (1728, 4) == reduce_all(10_000_000, FLOATS, A100).workspaces


def test_an_unknown_family_is_refused() -> None:
    """A misspelt family is an error, not a guess."""
    with pytest.raises(KeyError):
        _ = Arithmetic("medians", 4).partial_bytes


def test_nothing_to_reduce_costs_nothing() -> None:
    """Without elements there is no reduction; whoever asked fills the result instead."""
    assert FREE == reduction((0, 5), (5, 1), (0,), FLOATS, H200)


REDUCED = [
    # 8 rows of a million: 64 x 8 threads, 10^6 / 512 = 1954 values a thread, 8 columns of blocks. min(528 / 8
    # = 66, 1954 / 16 = 123) is 66 blocks a row: 4 bytes x 8 rows x 66 = 2112, and 8 counters.
    ((8, 1_000_000), (1_000_000, 1), (1,), (2112, 32)),
    # 8 columns of a million: 2 x 64 threads with 4 columns each, 10^6 / 64 = 15625 values a thread. min(16 x
    # 132 = 2112, 15625 / 16 = 977) blocks; 4 bytes x 8 x 977, for each of 2 threads x 4 columns.
    ((1_000_000, 8), (8, 1), (0,), (250_112, 4)),
    # 6 columns: 2 results a thread, 2 x 128 threads, 10^6 / 128 = 7813 values each; (6 / 2) / 2 rounds up to
    # 2 columns of blocks; min(8 x 132 / 2 = 528, 7813 / 16 = 489) blocks: 4 x 6 x 489 x (2 x 2) bytes.
    ((1_000_000, 6), (6, 1), (0,), (46_944, 8)),
    # 7 columns: 1 result a thread, 4 x 128 threads; 7 / 4 rounds up to 2 columns of blocks; min(264, 489): 4
    # x 7 x 264 x 4 bytes.
    ((1_000_000, 7), (7, 1), (0,), (29_568, 8)),
    # Every other column of 16: 8 x 64 threads, 15625 values each, min(528, 977) blocks x 4 x 8 x 8 bytes.
    ((1_000_000, 8), (16, 2), (0,), (135_168, 4)),
    # 600 rows are more blocks than the 528 that fit; of 1000 x 1000, 32 threads a row read 32 values each.
    ((600, 800_000), (800_000, 1), (1,), ()),
    ((1000, 1000), (1000, 1), (0,), ()),
    ((1000, 1000), (1000, 1), (1,), ()),
    # A stride of 1 is below the results' 5, so threads share a result: 256 x 2 threads, 4 x 10^6 / 512 = 7813
    # values each, 2 columns of blocks, min(264, 489) blocks x 4 bytes x 2 results, and 2 counters.
    ((4, 1000, 1000, 2), (1, 16, 20_000, 5), (0, 1, 2), (2112, 8)),
    # The first and the last dimension, 262144 values for each of 8 results: 64 x 8 threads, 512 values a
    # thread, 8 columns: min(66, 512 / 16 = 32) blocks; 4 x 8 x 32 bytes.
    ((64, 8, 4096), (32_768, 4096, 1), (0, 2), (1024, 32)),
    # The middle, 4096 values for each of 512 results, 4 results a thread: 32 x 4 threads; 1024 values a
    # thread; 128 / 32 = 4 columns. min(2112 / 4 = 528, 1024 / 16 = 64) blocks: 4 bytes x 512 x 64 for each of
    # 32 threads x 4 results, and 4 counters.
    ((64, 4096, 8), (32_768, 8, 1), (1,), (16_777_216, 16)),
]


@pytest.mark.parametrize(("shape", "strides", "dims", "workspaces"), REDUCED)
def test_dimensions_that_are_reduced(
    shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...], workspaces: tuple[int, ...]
) -> None:
    """Blocks that share a result meet in a buffer, with a counter for each column of blocks."""
    assert workspaces == reduction(shape, strides, dims, FLOATS, H200).workspaces


def test_dense_memory_is_one_dimension_in_any_order() -> None:
    """A transposed matrix is a row of a million: 1954 values a thread, 123 blocks x 4 bytes."""
    assert reduce_all(1_000_000, FLOATS, H200) == reduction((1000, 1000), (1, 1000), (0, 1), FLOATS, H200)
    assert (492, 4) == reduce_all(1_000_000, FLOATS, H200).workspaces


def test_dimensions_of_one_element_do_not_matter() -> None:
    """One row of 200000 is a full reduction: 391 values a thread, 25 blocks x 4 bytes."""
    columns = (250_112, 4)  # as for 8 columns of a million, above
    assert columns == reduction((1_000_000, 8, 1), (8, 1, 0), (0, 2), FLOATS, H200).workspaces
    for reduced in ((1,), (0, 1)):
        assert columns == reduction((1, 1_000_000, 8), (9, 8, 1), reduced, FLOATS, H200).workspaces
    one_row = reduction((1, 200_000), (200_000, 1), (1,), FLOATS, H200)
    assert reduce_all(200_000, FLOATS, H200) == one_row
    assert (100, 4) == one_row.workspaces


def test_what_outgrows_32_bits_is_reduced_in_parts() -> None:
    """2^29 + 1 floats: halves of 2^28 and 2^28 + 1, at 256 values a thread 2048 and 2049 blocks x 4 bytes."""
    assert OpCost(2, workspaces=(8192, 4, 8196, 4)) == reduce_all(2**29 + 1, FLOATS, H200)


def test_half_precision_in_parts_adds_up_apart() -> None:
    """2^30 + 1 halves take two kernels, which meet in one single-precision number of 4 bytes."""
    half = Arithmetic("sum", 2, is_half=True)
    in_parts, at_once = (reduce_all(elements, half, H200) for elements in (2**30 + 1, 2**30))
    assert (2, 4) == (in_parts.launches, in_parts.workspaces[0])
    assert len(in_parts.workspaces) == 2 * len(at_once.workspaces) + 1
