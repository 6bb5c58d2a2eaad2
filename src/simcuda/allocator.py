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

from simcuda.blocks import BLOCK_ROUNDING, SMALL_REQUEST, Block, FreeBlocks, block_size, segment_size
from simcuda.memory_stats import AllocatorStats, PoolStats
from simcuda.ordering import Mark, Ordering


class OutOfMemory(Exception):  # noqa: N818 - torch.OutOfMemoryError is the error that users meet
    """No block and no room for a new segment, even after the cached ones were released.

    Attributes:
        requested: Bytes asked for by the caller.
        capacity: Bytes of the device.
        limit: Bytes the process may use of them; lower than ``capacity`` under a memory fraction.
        reserved: Bytes in segments.
        allocated: Bytes in blocks handed out.
    """

    def __init__(self, *, requested: int, capacity: int, limit: int, reserved: int, allocated: int) -> None:
        self.requested = requested
        self.capacity = capacity
        self.limit = limit
        self.reserved = reserved
        self.allocated = allocated
        super().__init__(
            f"{requested} bytes asked for; of {limit} bytes, {reserved} are reserved, {allocated} allocated"
        )

    @property
    def free(self) -> int:
        """Bytes of the device outside every segment."""
        return self.capacity - self.reserved

    @property
    def unallocated(self) -> int:
        """Bytes in segments that no block in use covers: cached, or lost to fragmentation."""
        return self.reserved - self.allocated


class Allocator:
    """Serves the requests of every stream of one device.

    Args:
        capacity: Bytes of the device.
        ordering: What the host knows of the streams that use a block; decides when it may be reused.
    """

    def __init__(self, capacity: int, ordering: Ordering) -> None:
        self.capacity = capacity
        self.stats = AllocatorStats()
        self._stats_by_pool = {pool: (self.stats.both, own) for pool, own in self.stats.pools.items()}
        self._limit = capacity
        self._ordering = ordering
        self._free: dict[tuple[str, int], FreeBlocks] = {}
        self._waiting: dict[Block, list[Mark]] = {}
        self._next_address = 0x7F0000000000

    @property
    def reserved(self) -> int:
        """Bytes in segments now."""
        return self.stats.both.segments.size.current

    @property
    def requested(self) -> int:
        """Bytes asked for and not yet returned."""
        return self.stats.both.requested.size.current

    @property
    def allocated(self) -> int:
        """Bytes in blocks handed out now."""
        return self.stats.both.allocated.size.current

    def set_fraction(self, fraction: float) -> None:
        """Let the segments take no more than this part of the capacity."""
        self._limit = int(self.capacity * fraction)

    def malloc(self, requested: int, stream: int) -> Block | None:
        """A block of at least ``requested`` bytes for ``stream``; None for a request of 0 bytes.

        Raises:
            OutOfMemory: Not even releasing the cached segments made room.
        """
        if not requested:
            return None
        self._return_finished()
        size = block_size(requested)
        pool = "small_pool" if size <= SMALL_REQUEST else "large_pool"
        block = self._free_blocks(pool, stream).best_fit(size)
        if block is not None:
            self._uncache(block)
        else:
            block = self._segment_or_retry(requested, size, pool, stream)
        self._split(block, size)
        self._hand_out(block, requested)
        return block

    def free(self, block: Block) -> None:
        """Take a block back; where other streams use it, it is reused only after they have finished."""
        for stats in self._stats_of(block):
            stats.allocated.drop(block.size)
        if block.used_by:
            self._waiting[block] = [self._ordering.record(stream) for stream in sorted(block.used_by)]
            block.used_by = None
        else:
            self._return(block)

    def record_stream(self, block: Block, stream: int) -> None:
        """Note that ``stream`` uses the block, besides the one it was allocated on."""
        if stream != block.stream:
            block.used_by = (block.used_by or set()) | {stream}

    def empty_cache(self) -> None:
        """Wait for the other streams' uses and give every wholly free segment back to the device."""
        self._wait_for_all()
        for blocks in self._free.values():
            for block in blocks.whole_segments():
                self._release(block)

    def _free_blocks(self, pool: str, stream: int) -> FreeBlocks:
        key = (pool, stream)
        if key not in self._free:
            self._free[key] = FreeBlocks()
        return self._free[key]

    def _stats_of(self, block: Block) -> tuple[PoolStats, PoolStats]:
        return self._stats_by_pool[block.pool]

    def _segment_or_retry(self, requested: int, size: int, pool: str, stream: int) -> Block:
        block = self._new_segment(size, pool, stream)
        if block is None:
            self.empty_cache()
            self.stats.num_alloc_retries += 1
            block = self._new_segment(size, pool, stream)
        if block is None:
            self.stats.num_ooms += 1
            raise OutOfMemory(
                requested=requested,
                capacity=self.capacity,
                limit=self._limit,
                reserved=self.reserved,
                allocated=self.allocated,
            )
        return block

    def _new_segment(self, size: int, pool: str, stream: int) -> Block | None:
        size = segment_size(size)
        if self.reserved + size > self._limit:
            return None
        block = Block(self._next_address, size, stream, pool)
        self._next_address += size
        self.stats.num_device_alloc += 1
        for stats in self._stats_of(block):
            stats.segments.add(size)
        return block

    def _release(self, block: Block) -> None:
        self._uncache(block)
        self.stats.num_device_free += 1
        for stats in self._stats_of(block):
            stats.segments.drop(block.size)

    def _split(self, block: Block, size: int) -> None:
        left = block.size - size
        worth_keeping = left >= BLOCK_ROUNDING if block.pool == "small_pool" else left > SMALL_REQUEST
        if not worth_keeping:
            return
        rest = Block(block.address + size, left, block.stream, block.pool, before=block, after=block.after)
        if block.after is not None:
            block.after.before = rest
        block.size, block.after = size, rest
        self._cache(rest)

    def _hand_out(self, block: Block, requested: int) -> None:
        block.requested = requested
        for stats in self._stats_of(block):
            stats.allocated.add(block.size)
            stats.active.add(block.size)
            stats.requested.add(requested)

    def _return(self, block: Block) -> None:
        for stats in self._stats_of(block):
            stats.active.drop(block.size)
            stats.requested.drop(block.requested)
        block.requested = 0
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.is_cached:
                self._uncache(neighbour)
                self._merge(block, neighbour)
        self._cache(block)

    def _merge(self, block: Block, neighbour: Block) -> None:
        if neighbour is block.before:
            block.address, block.before = neighbour.address, neighbour.before
            if block.before is not None:
                block.before.after = block
        else:
            block.after = neighbour.after
            if block.after is not None:
                block.after.before = block
        block.size += neighbour.size

    def _cache(self, block: Block) -> None:
        block.is_cached = True
        self._free_blocks(block.pool, block.stream).add(block)
        if block.is_split:
            for stats in self._stats_of(block):
                stats.inactive.add(block.size)

    def _uncache(self, block: Block) -> None:
        block.is_cached = False
        self._free_blocks(block.pool, block.stream).remove(block)
        if block.is_split:
            for stats in self._stats_of(block):
                stats.inactive.drop(block.size)

    def _return_finished(self) -> None:
        if not self._waiting:
            return
        finished = [b for b, marks in self._waiting.items() if all(map(self._ordering.is_complete, marks))]
        for block in finished:
            del self._waiting[block]
            self._return(block)

    def _wait_for_all(self) -> None:
        self.stats.num_sync_all_streams += 1
        for block in list(self._waiting):
            self.stats.event_waits += len(self._waiting.pop(block))
            self._return(block)
