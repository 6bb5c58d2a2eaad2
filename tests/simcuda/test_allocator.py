from itertools import pairwise
from random import Random
from typing import Any

import pytest

from simcuda.device.allocator import Allocator, MemoryBlock, OutOfMemory
from simcuda.device.ordering import Ordering, StreamMark

MIB = 1 << 20
CAPACITY = 200 * MIB


def allocator(capacity: int = CAPACITY, order: Ordering | None = None) -> Allocator:
    """An allocator of which nobody asks how often it waits."""
    return Allocator(capacity, order or Ordering(), lambda _: None, lambda: None)


def take(memory: Allocator, size: int, stream: int = 0) -> MemoryBlock:
    """The block of a request that must be served."""
    block = memory.malloc(size, stream)
    assert block is not None
    return block


@pytest.mark.parametrize(
    ("requested", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        # One byte above the small pool: a 20 MiB segment, of which the rest (over 1 MiB) is split off.
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        # From 10 MiB on the segment is the next multiple of 2 MiB; a rest up to 1 MiB stays in the block.
        (10 * MIB, 10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),
        (11 * MIB - 512, 11 * MIB - 512, 12 * MIB),
        (39 * MIB // 2, 20 * MIB, 20 * MIB),
    ],
)
def test_sizes_of_blocks_and_segments(requested: int, block: int, segment: int) -> None:
    """Requests round up to 512 bytes, segments to 2 MiB, and a large block keeps up to 1 MiB that is left."""
    memory = allocator()
    take(memory, requested)
    stats = memory.stats.both
    assert (requested, block, segment) == (
        stats.requested.current,
        stats.allocated.current,
        stats.reserved.current,
    )


def test_the_smallest_free_block_that_fits_is_reused_first() -> None:
    """Of holes of 3, 2 and 4 MiB a request of 2 MiB takes that of 2, and one of 2.5 MiB that of 3."""
    memory = allocator()
    holes = {}
    for size in (3, 2, 4):
        holes[size] = take(memory, size * MIB)
        take(memory, MIB + 512)  # keeps the holes apart
    for hole in holes.values():
        memory.free(hole)
    assert holes[2].address == take(memory, 2 * MIB).address
    assert holes[3].address == take(memory, 5 * MIB // 2).address


def test_among_equal_blocks_the_lowest_address_is_reused_first() -> None:
    """Two equal holes are taken in the order of their addresses, not of their being freed."""
    memory = allocator()
    blocks = [take(memory, 512) for _ in range(4)]
    memory.free(blocks[2])
    memory.free(blocks[0])
    assert blocks[0].address == take(memory, 512).address


def test_a_stream_does_not_reuse_the_blocks_of_another() -> None:
    """A block freed on one stream is cached for that stream alone."""
    memory = allocator()
    memory.free(take(memory, 512, stream=0))
    take(memory, 512, stream=1)
    assert 4 * MIB == memory.reserved


def test_a_block_used_by_another_stream_returns_after_that_stream() -> None:
    """Freeing lowers what is allocated at once, what is requested only when the other stream has finished."""
    order = Ordering()
    memory = allocator(order=order)
    block = take(memory, 1000)
    order.launch(1)
    memory.record_stream(block, 1)
    memory.free(block)
    active: Any = memory.stats.as_nested_dict()["active"]
    assert (0, 1000) == (memory.stats.both.allocated.current, memory.stats.both.requested.current)
    assert {"current": 1, "peak": 1, "allocated": 1, "freed": 0} == active["all"]
    assert block.address != take(memory, 1000).address
    order.host_waits_for_streams([1])
    assert block.address == take(memory, 1000).address
    assert 2000 == memory.stats.both.requested.current


def test_a_block_waits_for_every_stream_that_used_it() -> None:
    """One of two streams having finished is not enough."""
    order = Ordering()
    memory = allocator(order=order)
    block = take(memory, 512)
    for stream in (1, 2):
        order.launch(stream)
        memory.record_stream(block, stream)
    memory.free(block)
    order.host_waits_for_streams([1])
    assert block.address != take(memory, 512).address
    order.host_waits_for_streams([2])
    assert block.address == take(memory, 512).address


def test_record_stream_of_the_own_stream_changes_nothing() -> None:
    """The stream that allocated a block needs no event before it reuses the block."""
    order = Ordering()
    memory = allocator(order=order)
    block = take(memory, 512)
    order.launch(0)
    memory.record_stream(block, 0)
    memory.free(block)
    assert block.address == take(memory, 512).address


def test_emptying_the_cache_gives_whole_segments_back() -> None:
    """A segment without a block in use goes; one with a single block in use stays entirely."""
    memory = allocator()
    whole, kept = take(memory, 12 * MIB), take(memory, 2 * MIB)
    memory.free(take(memory, 2 * MIB))
    memory.free(whole)
    memory.empty_cache()
    assert (20 * MIB, 1) == (memory.reserved, memory.stats.num_device_free)
    memory.free(kept)
    memory.empty_cache()
    assert (0, 2) == (memory.reserved, memory.stats.num_device_free)


def test_emptying_the_cache_waits_for_other_streams() -> None:
    """Every use by another stream costs the host one wait for an event."""
    waits: list[StreamMark] = []
    memory = Allocator(CAPACITY, Ordering(), waits.append, lambda: None)
    block = take(memory, 512)
    for stream in (1, 2, 2):
        memory.record_stream(block, stream)
    memory.free(block)
    memory.empty_cache()
    assert ([1, 2], 1) == ([mark.stream for mark in waits], memory.stats.num_sync_all_streams)
    assert 0 == memory.reserved


def test_neighbours_that_wait_for_other_streams_merge_when_the_cache_is_emptied() -> None:
    """Adjoining blocks that all wait are joined again to the segment they came from, which then goes."""
    memory = allocator()
    blocks = [take(memory, 512) for _ in range(3)]
    for block in blocks:
        memory.record_stream(block, 1)
        memory.free(block)
    memory.empty_cache()
    assert 0 == memory.reserved


@pytest.mark.parametrize("seed", range(5))
def test_all_memory_returns_whatever_the_order(seed: int) -> None:
    """After a thousand random requests and returns no blocks overlap, and in the end nothing is left."""
    choose = Random(seed)  # noqa: S311 - a test wants the same sequence each time
    memory = allocator(2000 * MIB)
    blocks: list[MemoryBlock] = []
    for _ in range(1000):
        if blocks and choose.random() < 0.45:
            memory.free(blocks.pop(choose.randrange(len(blocks))))
        else:
            blocks.append(take(memory, choose.choice([1, 700, 5000, MIB, 3 * MIB // 2, 12 * MIB])))
    blocks.sort(key=lambda block: block.address)
    assert all(one.address + one.size <= next_one.address for one, next_one in pairwise(blocks))
    assert memory.stats.both.allocated.current == sum(block.size for block in blocks)
    for block in choose.sample(blocks, len(blocks)):
        memory.free(block)
    memory.empty_cache()
    memory.as_nested_dict()
    assert (0, 0, 0) == (
        memory.reserved,
        memory.stats.both.allocated.current,
        memory.stats.both.inactive.current,
    )


def test_totals_start_again_at_a_reset() -> None:
    """Resetting the accumulated statistics leaves the values now and their peaks alone."""
    memory = allocator(20 * MIB)
    memory.free(take(memory, 1000))
    take(memory, 500)
    with pytest.raises(OutOfMemory):
        memory.malloc(20 * MIB, 0)
    memory.stats.reset_accumulated()
    expected = {"current": 500, "peak": 1000, "allocated": 0, "freed": 0}
    assert expected == memory.stats.both.requested.as_dict()
    assert (0, 0) == (memory.stats.num_ooms, memory.stats.num_alloc_retries)


def test_parts_of_a_segment_that_are_free_count_as_inactive() -> None:
    """The unused rest of a segment in use is inactive; a wholly free segment is merely cached."""
    memory = allocator()
    block = take(memory, 512)
    stats = memory.stats.both
    memory.as_nested_dict()
    assert (1, 2 * MIB - 512) == (stats.inactive.current, stats.inactive_bytes.current)
    memory.free(block)
    memory.as_nested_dict()
    assert (0, 0) == (stats.inactive.current, stats.inactive_bytes.current)


def test_statistics_carry_the_names_that_pytorch_gives_them() -> None:
    """The nested statistics split by pool, and by the values now, at the peak and in total."""
    memory = allocator()
    memory.free(take(memory, 100))
    take(memory, 2 * MIB)
    nested = memory.stats.as_nested_dict()
    expected = {
        "all": {"current": 2 * MIB, "peak": 2 * MIB, "allocated": 2 * MIB + 100, "freed": 100},
        "small_pool": {"current": 0, "peak": 100, "allocated": 100, "freed": 100},
        "large_pool": {"current": 2 * MIB, "peak": 2 * MIB, "allocated": 2 * MIB, "freed": 0},
    }
    assert expected == nested["requested_bytes"]
    assert (0, 2) == (nested["num_ooms"], nested["num_device_alloc"])
