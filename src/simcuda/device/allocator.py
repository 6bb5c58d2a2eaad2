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

from collections.abc import Callable

from simcuda.device.memory_blocks import BLOCK_ROUNDING, SMALL_REQUEST, Block, Pool, segment_size
from simcuda.device.memory_stats import AllocatorStats
from simcuda.device.ordering import Mark, Ordering


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
        waited: Called with a number of events that the host has waited for, each a ``cudaEventSynchronize``.
    """

    def __init__(self, capacity: int, ordering: Ordering, waited: Callable[[int], None]) -> None:
        self.capacity = capacity
        self.stats = AllocatorStats()
        self._limit = capacity
        self._ordering = ordering
        self._waited = waited
        self._small: dict[int, Pool] = {}
        self._large: dict[int, Pool] = {}
        self._waiting: dict[Block, list[Mark]] = {}
        self._next_address = 0x7F0000000000

    @property
    def reserved(self) -> int:
        """Bytes in segments now."""
        return self.stats.both.reserved.current

    @property
    def requested(self) -> int:
        """Bytes asked for and not yet returned."""
        return self.stats.both.requested.current

    @property
    def allocated(self) -> int:
        """Bytes in blocks handed out now."""
        return self.stats.both.allocated.current

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
        if self._waiting:
            self._return_finished()
        size = -(-requested // BLOCK_ROUNDING) * BLOCK_ROUNDING
        pools = self._small if size <= SMALL_REQUEST else self._large
        pool = pools.get(stream) or self._new_pool(pools, stream)
        block = pool.take(size) or self._segment_or_retry(requested, size, pool)
        inactive = inactive_bytes = 0
        if block.before is not None or block.after is not None:
            inactive, inactive_bytes = -1, -block.size
        if block.size - size >= pool.least_rest:
            rest = block.split_off(size)
            pool.add(rest)
            inactive, inactive_bytes = inactive + 1, inactive_bytes + rest.size
        block.requested = requested
        for stats in pool.stats:
            stats.hand_out(block.size, requested, inactive, inactive_bytes)
        return block

    def free(self, block: Block) -> None:
        """Take a block back; where other streams use it, it is reused only after they have finished."""
        if not block.used_by:
            for stats in block.pool.stats:
                stats.take_back(block.size, block.requested)
            self._cache(block)
            return
        for stats in block.pool.stats:
            stats.wait(block.size)
        self._waiting[block] = [self._ordering.record(stream) for stream in sorted(block.used_by)]
        block.used_by = None

    def record_stream(self, block: Block, stream: int) -> None:
        """Note that ``stream`` uses the block, besides the one it was allocated on."""
        if stream != block.stream:
            block.used_by = (block.used_by or set()) | {stream}

    def empty_cache(self) -> None:
        """Wait for the other streams' uses and give every wholly free segment back to the device."""
        self._wait_for_all()
        for pool in (*self._small.values(), *self._large.values()):
            for block in pool.whole_segments():
                self._release(block)

    def _new_pool(self, pools: dict[int, Pool], stream: int) -> Pool:
        if pools is self._small:
            pools[stream] = pool = Pool(stream, BLOCK_ROUNDING, self.stats.that_count("small_pool"))
            return pool
        if not pools:
            self.stats.divide()
            for small in self._small.values():
                small.stats = self.stats.that_count("small_pool")
        pools[stream] = pool = Pool(stream, SMALL_REQUEST + 1, self.stats.that_count("large_pool"))
        return pool

    def _segment_or_retry(self, requested: int, size: int, pool: Pool) -> Block:
        block = self._new_segment(size, pool)
        if block is None:
            self.empty_cache()
            self.stats.num_alloc_retries += 1
            block = self._new_segment(size, pool)
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

    def _new_segment(self, size: int, pool: Pool) -> Block | None:
        size = segment_size(size)
        if self.reserved + size > self._limit:
            return None
        block = Block(self._next_address, size, pool.stream, pool)
        self._next_address += size
        self.stats.num_device_alloc += 1
        for stats in pool.stats:
            stats.hold(size)
        return block

    def _release(self, block: Block) -> None:
        block.pool.remove(block)
        self.stats.num_device_free += 1
        for stats in block.pool.stats:
            stats.hold(-block.size)

    def _cache(self, block: Block) -> None:
        """Offer a block for reuse, one with its free neighbours."""
        pool = block.pool
        inactive = inactive_bytes = 0
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.is_cached:
                pool.remove(neighbour)
                inactive, inactive_bytes = inactive - 1, inactive_bytes - neighbour.size
                block.absorb(neighbour)
        block.requested = 0
        pool.add(block)
        if block.before is not None or block.after is not None:
            inactive, inactive_bytes = inactive + 1, inactive_bytes + block.size
        if inactive_bytes:
            for stats in pool.stats:
                stats.idle(inactive, inactive_bytes)

    def _return_finished(self) -> None:
        finished = [b for b, marks in self._waiting.items() if all(map(self._ordering.is_complete, marks))]
        for block in finished:
            del self._waiting[block]
            self._end_wait(block)

    def _wait_for_all(self) -> None:
        self.stats.num_sync_all_streams += 1
        for block in list(self._waiting):
            self._waited(len(self._waiting.pop(block)))
            self._end_wait(block)

    def _end_wait(self, block: Block) -> None:
        for stats in block.pool.stats:
            stats.end_wait(block.size, block.requested)
        self._cache(block)
