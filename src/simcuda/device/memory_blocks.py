"""Blocks of device memory: their sizes, their neighbours, and the order in which free ones are reused."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

from simcuda.device.memory_stats import PoolStats

MIB = 1 << 20
BLOCK_ROUNDING = 512
SMALL_REQUEST = MIB
SMALL_SEGMENT = 2 * MIB
MEDIUM_REQUEST = 10 * MIB
MEDIUM_SEGMENT = 20 * MIB
SEGMENT_ROUNDING = 2 * MIB


@dataclass(eq=False, slots=True)
class Block:
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
    pool: Pool
    requested: int = 0
    is_cached: bool = False
    used_by: set[int] | None = None
    before: Block | None = None
    after: Block | None = None

    @property
    def is_split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.before is not None or self.after is not None

    def split_off(self, size: int) -> Block:
        """Keep ``size`` bytes; the rest becomes a block of its own, which is returned."""
        rest = Block(
            self.address + size, self.size - size, self.stream, self.pool, before=self, after=self.after
        )
        if self.after is not None:
            self.after.before = rest
        self.size, self.after = size, rest
        return rest

    def absorb(self, neighbour: Block) -> None:
        """Take the place of a neighbour as well."""
        if neighbour is self.before:
            self.address, self.before = neighbour.address, neighbour.before
            if self.before is not None:
                self.before.after = self
        else:
            self.after = neighbour.after
            if self.after is not None:
                self.after.before = self
        self.size += neighbour.size


class Pool:
    """The free blocks of one stream, small or large ones, ordered by size, then address.

    Attributes:
        stream: The stream whose requests they serve.
        least_rest: Bytes from which on the rest of a block is split off.
        stats: The statistics that count its blocks.
    """

    def __init__(self, stream: int, least_rest: int, stats: tuple[PoolStats, ...]) -> None:
        self.stream = stream
        self.least_rest = least_rest
        self.stats = stats
        self._order: list[tuple[int, int, Block]] = []

    def add(self, block: Block) -> None:
        """Offer a block for reuse."""
        block.is_cached = True
        insort(self._order, (block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Take back an offered block."""
        block.is_cached = False
        del self._order[bisect_left(self._order, (block.size, block.address))]

    def take(self, size: int) -> Block | None:
        """Take the smallest block of at least ``size`` bytes, the lowest address first among equals."""
        order = self._order
        position = bisect_left(order, (size,))
        if position == len(order):
            return None
        block = order.pop(position)[2]
        block.is_cached = False
        return block

    def whole_segments(self) -> list[Block]:
        """The blocks that cover their segment, in order."""
        return [block for _, _, block in self._order if not block.is_split]


def segment_size(size: int) -> int:
    """Bytes of the segment that is made for a block of ``size`` bytes."""
    if size <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if size < MEDIUM_REQUEST:
        return MEDIUM_SEGMENT
    return -(-size // SEGMENT_ROUNDING) * SEGMENT_ROUNDING
