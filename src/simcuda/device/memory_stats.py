"""The caching allocator's statistics, under the names of ``torch.cuda.memory_stats``."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, fields

POOLS = ("small_pool", "large_pool")


@dataclass(slots=True)
class Quantity:
    """A number over time: its value now, its peak, and all that was added since a reset."""

    current: int = 0
    peak: int = 0
    added: int = 0
    at_reset: int = 0

    def add(self, amount: int) -> None:
        """Count more, or less where it is negative."""
        self.current += amount
        self.added += max(amount, 0)
        self.peak = max(self.peak, self.current)

    def as_dict(self) -> dict[str, int]:
        """Its four values under PyTorch's names."""
        # What was taken away is not counted: it follows from the rest.
        freed = self.at_reset + self.added - self.current
        return {
            "current": self.current,
            "peak": self.peak,
            "allocated": self.added,
            "freed": freed,
        }


@dataclass(slots=True, eq=False)
class PoolStats:
    """The counters of PyTorch for each pool and for both together.

    Attributes:
        blocks: Blocks handed out.
        allocated: Their bytes.
        requested: Bytes that were asked for, in blocks handed out or waiting for another stream.
        waiting: Blocks given back that wait for another stream before they can be reused.
        waiting_bytes: Their bytes.
        most_active: Most blocks handed out or waiting at once, while any waited.
        most_active_bytes: Their bytes, most at once.
        inactive: Free blocks in segments that are partly in use, counted on demand.
        inactive_bytes: Their bytes.
        segments: Segments held.
        reserved: Their bytes.
    """

    blocks: Quantity = field(default_factory=Quantity)
    allocated: Quantity = field(default_factory=Quantity)
    requested: Quantity = field(default_factory=Quantity)
    waiting: int = 0
    waiting_bytes: int = 0
    most_active: int = 0
    most_active_bytes: int = 0
    inactive: Quantity = field(default_factory=Quantity)
    inactive_bytes: Quantity = field(default_factory=Quantity)
    segments: Quantity = field(default_factory=Quantity)
    reserved: Quantity = field(default_factory=Quantity)

    def note_active(self) -> None:
        """Record a peak of active blocks, which are handed out or wait."""
        self.most_active = max(self.most_active, self.blocks.current + self.waiting)
        self.most_active_bytes = max(
            self.most_active_bytes, self.allocated.current + self.waiting_bytes
        )

    def quantities(self) -> dict[str, Quantity]:
        """Every quantity by PyTorch's name for it; quantities of active blocks as copies."""
        # Active blocks are only counted while some wait; otherwise they are those handed out.
        blocks, size = copy(self.blocks), copy(self.allocated)
        blocks.current += self.waiting
        blocks.peak = max(self.most_active, blocks.peak)
        size.current += self.waiting_bytes
        size.peak = max(self.most_active_bytes, size.peak)
        return {
            "allocation": self.blocks,
            "allocated_bytes": self.allocated,
            "active": blocks,
            "active_bytes": size,
            "requested_bytes": self.requested,
            "inactive_split": self.inactive,
            "inactive_split_bytes": self.inactive_bytes,
            "segment": self.segments,
            "reserved_bytes": self.reserved,
        }


def take_back(counted: Iterable[PoolStats], size: int, requested: int) -> None:
    """Count a block that is given back."""
    for stats in counted:
        stats.blocks.current -= 1
        stats.allocated.current -= size
        stats.requested.current -= requested


def wait(counted: Iterable[PoolStats], size: int) -> None:
    """Count a block that is given back and waits for another stream."""
    # Its requested bytes stay in use until the wait is over.
    take_back(counted, size, 0)
    for stats in counted:
        stats.waiting += 1
        stats.waiting_bytes += size
        stats.note_active()


def end_wait(counted: Iterable[PoolStats], size: int, requested: int) -> None:
    """Count a block that has waited long enough."""
    # It was given back when the wait began, but for what was asked for.
    for stats in counted:
        stats.waiting -= 1
        stats.waiting_bytes -= size
        stats.requested.current -= requested


def hold(counted: Iterable[PoolStats], size: int) -> None:
    """Count a segment that the device gave, or took back where ``size`` is negative."""
    for stats in counted:
        stats.segments.add(1 if size > 0 else -1)
        stats.reserved.add(size)


@dataclass(eq=False)
class AllocatorStats:
    """All statistics of one device's allocator.

    Attributes:
        pools: The quantities of ``small_pool`` and ``large_pool``.
        both: The same over both pools; the first one's own while there are only small blocks.
        num_alloc_retries: How often cached segments were released to make room.
        num_ooms: How often that was not enough.
        num_sync_all_streams: How often all outstanding events were waited for.
        num_device_alloc: Calls of ``cudaMalloc`` that made a segment.
        num_device_free: Calls of ``cudaFree``.
    """

    num_alloc_retries: int = 0
    num_ooms: int = 0
    num_sync_all_streams: int = 0
    num_device_alloc: int = 0
    num_device_free: int = 0

    def __post_init__(self) -> None:
        self.pools = {pool: PoolStats() for pool in POOLS}
        self.both = self.pools["small_pool"]

    def counting(self, pool: str) -> tuple[PoolStats, ...]:
        """The statistics that a block of a pool counts in."""
        own = self.pools[pool]
        return (own,) if own is self.both else (self.both, own)

    def reset_peak(self) -> None:
        """Reset every peak to the present value."""
        for stats in (self.both, *self.pools.values()):
            for quantity in stats.quantities().values():
                quantity.peak = quantity.current
            stats.most_active = stats.most_active_bytes = 0
            stats.note_active()

    def reset_accumulated(self) -> None:
        """Reset every total, and the counts of retries and of running out of memory."""
        for stats in (self.both, *self.pools.values()):
            for quantity in stats.quantities().values():
                quantity.added, quantity.at_reset = 0, quantity.current
        self.num_alloc_retries = self.num_ooms = 0

    def as_nested_dict(self) -> dict[str, object]:
        """The shape of ``torch.cuda.memory_stats_as_nested_dict``, with 0 for what is not modelled."""
        groups = {"all": self.both.quantities()}
        groups |= {pool: stats.quantities() for pool, stats in self.pools.items()}
        nested: dict[str, object] = {
            name: {
                group: quantities[name].as_dict()
                for group, quantities in groups.items()
            }
            for name in groups["all"]
        }
        nested |= {each.name: getattr(self, each.name) for each in fields(self)}
        # PyTorch's own code asks for these names.
        unused = Quantity().as_dict()
        return nested | {
            "oversize_allocations": unused,
            "oversize_segments": unused,
            "max_split_size": -1,
        }
