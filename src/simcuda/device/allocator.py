"""The caching allocator of one simulated device: which block serves a request, and when there is none.

Memory comes from the device in *segments* and is handed out in *blocks*. A free block is reused by the stream
that allocated it, the smallest that fits first; what is left over is split off, and free neighbours merge.
The limit of a device is on its segments, so a segment that is partly in use keeps all of its bytes from
everyone else: that is how memory fragments.

Known limitations:
    The device serves any segment that fits in the number of bytes left: physical addresses do not fragment,
    and the CUDA context and other processes take nothing. Expandable segments, ``max_split_size_mb``,
    rounding to powers of two, garbage collection of cached blocks, private pools of CUDA graphs and
    ``cudaMallocAsync`` are not modelled. A block that waits for another stream returns once the host is known
    to have waited for that stream, where a real GPU may have finished earlier.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from simcuda.device.memory_stats import (
    AllocatorStats,
    PoolStats,
    Quantity,
    end_wait,
    hold,
    take_back,
    wait,
)
from simcuda.device.ordering import Ordering, StreamMark

# The constants of c10/cuda/CUDACachingAllocator.cpp.
MIB = 1 << 20
BLOCK_ROUNDING = 512
SMALL_REQUEST = MIB
SMALL_SEGMENT = 2 * MIB
MEDIUM_REQUEST = 10 * MIB
MEDIUM_SEGMENT = 20 * MIB
SEGMENT_ROUNDING = 2 * MIB


class OutOfMemory(Exception):  # noqa: N818 - torch.OutOfMemoryError is the error that users meet
    """No block and no room for a new segment, even after the cached ones were released."""


@dataclass(eq=False, slots=True)
class MemoryBlock:
    """A range of addresses within one segment; a link in the segment's chain of neighbours.

    Attributes:
        address: First byte; unique among the blocks of a device at any time.
        size: Bytes it covers, at least what was requested.
        stream: The stream it was allocated on, the only one that may reuse it.
        pool: Where it goes when it is free.
        requested: Bytes its user asked for; 0 while it is cached.
        is_cached: Whether it is free for reuse.
        used_by: Other streams that use it, by ``record_stream``.
    """

    address: int
    size: int
    stream: int
    pool: BlockPool
    requested: int = 0
    is_cached: bool = False
    used_by: set[int] | None = None
    before: MemoryBlock | None = None
    after: MemoryBlock | None = None


@dataclass(eq=False)
class BlockPool:
    """The free blocks of one stream, small or large ones, ordered by size, then address.

    Attributes:
        stream: The stream whose requests they serve.
        least_rest: Bytes from which on the rest of a block is split off.
        stats: The statistics that count its blocks.
        order: Size, address and block of each.
    """

    stream: int
    least_rest: int
    stats: tuple[PoolStats, ...]
    order: list[tuple[int, int, MemoryBlock]] = field(default_factory=list)

    def add(self, block: MemoryBlock) -> None:
        """Offer a block for reuse."""
        block.is_cached = True
        insort(self.order, (block.size, block.address, block))

    def remove(self, block: MemoryBlock) -> None:
        """Take back an offered block."""
        block.is_cached = False
        del self.order[bisect_left(self.order, (block.size, block.address))]

    def move(self, position: int, block: MemoryBlock) -> None:
        """Put an offered block, whose size has changed, where it belongs in the order."""
        order = self.order
        entry = (block.size, block.address, block)
        is_above = position == 0 or order[position - 1] < entry
        if is_above and (position + 1 == len(order) or entry < order[position + 1]):
            order[position] = entry
        else:
            del order[position]
            insort(order, entry)


class Allocator:
    """Serves the requests of every stream of one device.

    Args:
        capacity: Bytes of the device.
        ordering: What the host knows of the streams that use a block; decides when it may be reused.
        wait: Lets the host wait for an event.
        may_block: Called for every ``cudaMalloc`` and ``cudaFree``: the host may wait in them.

    Attributes:
        fraction: The part of the capacity that segments may take.
    """

    def __init__(
        self,
        capacity: int,
        ordering: Ordering,
        wait: Callable[[StreamMark], None],
        may_block: Callable[[], object],
    ) -> None:
        self.capacity = capacity
        self.fraction = 1.0
        self.stats = AllocatorStats()
        self.ordering = ordering
        self._wait, self._may_block = wait, may_block
        self._small: dict[int, BlockPool] = {}
        self._large: dict[int, BlockPool] = {}
        self._waiting: dict[MemoryBlock, list[StreamMark]] = {}
        # The garbage collector may give blocks back at any time, as while another one is handed out.
        self._is_busy = False
        self._given_meanwhile: list[MemoryBlock] = []
        self._next_address = 0x7F0000000000

    @property
    def reserved(self) -> int:
        """Bytes in segments now."""
        return self.stats.both.reserved.current

    @property
    def limit(self) -> int:
        """Bytes that segments may take: fewer than the capacity under a memory fraction."""
        return int(self.capacity * self.fraction)

    def malloc(self, requested: int, stream: int) -> MemoryBlock | None:
        """A block of at least ``requested`` bytes for ``stream``; None for a request of 0 bytes.

        Raises:
            OutOfMemory: Not even releasing the cached segments made room.
        """
        if not requested:
            return None
        self._is_busy = True
        if self._waiting:
            complete = self.ordering.is_complete
            for block in [
                b for b, marks in self._waiting.items() if all(map(complete, marks))
            ]:
                del self._waiting[block]
                self._cache(block, has_waited=True)
        size = -(-requested // BLOCK_ROUNDING) * BLOCK_ROUNDING
        pools = self._small if size <= SMALL_REQUEST else self._large
        pool = pools.get(stream) or self._new_pool(pools, stream)
        # The smallest that is large enough serves it, the one with the lowest address among equals.
        order = pool.order
        position = bisect_left(order, (size,))
        if position == len(order):
            self._new_segment(requested, size, pool)
            position = bisect_left(order, (size,))
        found = order[position][2]
        left = found.size - size
        if left < pool.least_rest:
            taken = found
            taken.is_cached = False
            del order[position]
        else:
            # Its beginning is handed out. The rest is a neighbour, with which that merges when both are free.
            taken = MemoryBlock(
                found.address, size, stream, pool, 0, False, None, found.before, found
            )
            if found.before is not None:
                found.before.after = taken
            found.before, found.address, found.size = taken, found.address + size, left
            if len(order) > 1:
                pool.move(position, found)
            else:
                order[0] = left, found.address, found
        taken.requested = requested
        size = taken.size
        # Comparing is faster than calling max.
        for stats in pool.stats:
            blocks = stats.blocks
            allocated = stats.allocated
            asked = stats.requested
            blocks.added += 1
            allocated.added += size
            asked.added += requested
            blocks.current = blocks_now = blocks.current + 1
            allocated.current = allocated_now = allocated.current + size
            asked.current = asked_now = asked.current + requested
            if blocks_now > blocks.peak:
                blocks.peak = blocks_now
            if allocated_now > allocated.peak:
                allocated.peak = allocated_now
            if asked_now > asked.peak:
                asked.peak = asked_now
            if stats.waiting:
                stats.note_active()
        self._is_busy = False
        while self._given_meanwhile:
            self.free(self._given_meanwhile.pop())
        return taken

    def free(self, block: MemoryBlock) -> None:
        """Take a block back, for reuse after the other streams that use it have finished.

        The uses that count are those given to ``record_stream``.

        A block that comes while another one is handed out or taken back is taken after that one.
        The garbage collector runs where it likes, also between two lines of this class.
        Without this it would change the order of free blocks under the one that is looked for.
        """
        if self._is_busy:
            self._given_meanwhile.append(block)
            return
        self._is_busy = True
        if block.used_by:
            wait(block.pool.stats, block.size)
            # It comes back once the host knows that these streams have come this far.
            self._waiting[block] = [
                self.ordering.record(stream) for stream in sorted(block.used_by)
            ]
            block.used_by = None
        else:
            self._cache(block)
        self._is_busy = False
        while self._given_meanwhile:
            self.free(self._given_meanwhile.pop())

    def record_stream(self, block: MemoryBlock, stream: int) -> None:
        """Note that another stream, by its number on the machine, uses a block that is handed out."""
        if stream != block.stream:
            block.used_by = (block.used_by or set()) | {stream}

    def empty_cache(self) -> None:
        """Wait for the other streams' uses and give every wholly free segment back to the device."""
        self.stats.num_sync_all_streams += 1
        for block in list(self._waiting):
            for mark in self._waiting.pop(block):
                self._wait(mark)
            self._cache(block, has_waited=True)
        for pool in (*self._small.values(), *self._large.values()):
            whole = [
                b for _, _, b in pool.order if b.before is None and b.after is None
            ]
            for block in whole:
                pool.remove(block)
                self.stats.num_device_free += 1
                self._may_block()
                hold(pool.stats, -block.size)

    def as_nested_dict(self) -> dict[str, object]:
        """Return the statistics as ``torch.cuda.memory_stats_as_nested_dict`` has them.

        Inactive blocks are counted as they are now; their peak and total are the same numbers.
        """
        for stats in (self.stats.both, *self.stats.pools.values()):
            stats.inactive, stats.inactive_bytes = Quantity(), Quantity()
        for pool in (*self._small.values(), *self._large.values()):
            for size, _, block in pool.order:
                if block.before or block.after:
                    for stats in pool.stats:
                        stats.inactive.add(1)
                        stats.inactive_bytes.add(size)
        return self.stats.as_nested_dict()

    def _new_pool(self, pools: dict[int, BlockPool], stream: int) -> BlockPool:
        if pools is self._small:
            pools[stream] = pool = BlockPool(
                stream, BLOCK_ROUNDING, self.stats.counting("small_pool")
            )
            return pool
        if not pools:
            # With the first large block, the statistics of the small pool are no longer those of both.
            self.stats.both = deepcopy(self.stats.both)
            for small in self._small.values():
                small.stats = self.stats.counting("small_pool")
        pools[stream] = pool = BlockPool(
            stream, SMALL_REQUEST + 1, self.stats.counting("large_pool")
        )
        return pool

    def _new_segment(self, requested: int, size: int, pool: BlockPool) -> None:
        """Offer a new segment, for which cached ones may have to go first."""
        if size <= SMALL_REQUEST:
            segment = SMALL_SEGMENT
        elif size < MEDIUM_REQUEST:
            segment = MEDIUM_SEGMENT
        else:
            segment = -(-size // SEGMENT_ROUNDING) * SEGMENT_ROUNDING
        limit = self.limit
        # Cached segments of another size may be what takes the room.
        if self.reserved + segment > limit:
            self.empty_cache()
            self.stats.num_alloc_retries += 1
        if self.reserved + segment > limit:
            self.stats.num_ooms += 1
            self._is_busy = False
            raise OutOfMemory(
                f"{requested} bytes asked for; {self.reserved} of {limit} are reserved"
            )
        # Addresses are never used again, so that a block is known by its first one.
        pool.add(MemoryBlock(self._next_address, segment, pool.stream, pool))
        self._next_address += segment
        self.stats.num_device_alloc += 1
        self._may_block()
        hold(pool.stats, segment)

    def _cache(self, block: MemoryBlock, *, has_waited: bool = False) -> None:
        """Offer a block for reuse, one with its free neighbours."""
        pool = block.pool
        size = block.size
        requested = block.requested
        before, after = block.before, block.after
        block.requested = 0
        # Free neighbours within a segment become one block again.
        if before is not None and before.is_cached:
            pool.remove(before)
            block.address, block.size, block.before = (
                before.address,
                before.size + size,
                before.before,
            )
            if block.before is not None:
                block.before.after = block
        if after is not None and after.is_cached:
            position = bisect_left(pool.order, (after.size, after.address))
            after.address, after.size, after.before = (
                block.address,
                after.size + block.size,
                block.before,
            )
            if after.before is not None:
                after.before.after = after
            pool.move(position, after)
            block = after
        else:
            pool.add(block)
        if has_waited:
            end_wait(pool.stats, size, requested)
        else:
            take_back(pool.stats, size, requested)
