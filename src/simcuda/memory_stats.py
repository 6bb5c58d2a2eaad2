"""The caching allocator's statistics, under the names of ``torch.cuda.memory_stats``."""

from __future__ import annotations

POOLS = ("small_pool", "large_pool")


class Quantity:
    """A number over time: its value now, its peak, and all that was ever added."""

    __slots__ = ("added", "at_reset", "current", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.added = self.at_reset = 0

    def reset_accumulated(self) -> None:
        """Count what is added and taken away from here on."""
        self.added, self.at_reset = 0, self.current

    def as_dict(self) -> dict[str, int]:
        """Its four sides by the names PyTorch gives them."""
        freed = self.at_reset + self.added - self.current
        return {"current": self.current, "peak": self.peak, "allocated": self.added, "freed": freed}


class Tally:
    """How many there are of something, and their bytes."""

    __slots__ = ("count", "size")

    def __init__(self) -> None:
        self.count = Quantity()
        self.size = Quantity()

    def add(self, size: int) -> None:
        """Add one of ``size`` bytes."""
        count, total = self.count, self.size
        count.current += 1
        count.added += 1
        total.current += size
        total.added += size
        # This runs many times an operation: comparing is faster than calling max.
        if count.current > count.peak:
            count.peak = count.current
        if total.current > total.peak:
            total.peak = total.current

    def drop(self, size: int) -> None:
        """Take one of ``size`` bytes away."""
        self.count.current -= 1
        self.size.current -= size


class PoolStats:
    """What PyTorch counts for each pool and for both together.

    Attributes:
        allocated: Blocks handed out, by their size.
        active: Those, and the ones that wait for another stream before they can be reused.
        requested: The same blocks as ``active``, by the bytes that were asked for.
        inactive: Free blocks in segments that are partly in use.
        segments: Segments held.
    """

    __slots__ = ("active", "allocated", "inactive", "requested", "segments")

    def __init__(self) -> None:
        self.allocated = Tally()
        self.active = Tally()
        self.requested = Tally()
        self.inactive = Tally()
        self.segments = Tally()

    def quantities(self) -> dict[str, Quantity]:
        """Every quantity by PyTorch's name for it."""
        return {
            "allocation": self.allocated.count,
            "allocated_bytes": self.allocated.size,
            "active": self.active.count,
            "active_bytes": self.active.size,
            "requested_bytes": self.requested.size,
            "inactive_split": self.inactive.count,
            "inactive_split_bytes": self.inactive.size,
            "segment": self.segments.count,
            "reserved_bytes": self.segments.size,
        }


class AllocatorStats:
    """All statistics of one device's allocator.

    Attributes:
        both: The quantities over both pools.
        pools: The same for ``small_pool`` and ``large_pool``.
        num_alloc_retries: How often cached segments were released to make room.
        num_ooms: How often that was not enough.
        num_sync_all_streams: How often all outstanding events were waited for.
        num_device_alloc: Calls of ``cudaMalloc`` that made a segment.
        num_device_free: Calls of ``cudaFree``.
        event_waits: Events waited for while releasing memory; each is a ``cudaEventSynchronize``.
    """

    COUNTERS = (
        "num_alloc_retries",
        "num_ooms",
        "num_sync_all_streams",
        "num_device_alloc",
        "num_device_free",
    )

    def __init__(self) -> None:
        self.both = PoolStats()
        self.pools = {pool: PoolStats() for pool in POOLS}
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0
        self.num_device_free = 0
        self.event_waits = 0

    def reset_peak(self) -> None:
        """Let every peak start again from the value now."""
        for quantity in self._quantities():
            quantity.peak = quantity.current

    def reset_accumulated(self) -> None:
        """Let every total start again, and the counts of retries and of running out of memory."""
        for quantity in self._quantities():
            quantity.reset_accumulated()
        self.num_alloc_retries = self.num_ooms = 0

    def as_nested_dict(self) -> dict[str, object]:
        """The shape of ``torch.cuda.memory_stats_as_nested_dict``, with 0 for what is not modelled."""
        groups = {"all": self.both.quantities()}
        groups |= {pool: stats.quantities() for pool, stats in self.pools.items()}
        nested: dict[str, object] = {
            name: {group: quantities[name].as_dict() for group, quantities in groups.items()}
            for name in groups["all"]
        }
        nested |= {name: getattr(self, name) for name in self.COUNTERS}
        unused = Quantity().as_dict()
        return nested | {"oversize_allocations": unused, "oversize_segments": unused, "max_split_size": -1}

    def _quantities(self) -> list[Quantity]:
        groups = (self.both, *self.pools.values())
        return [quantity for group in groups for quantity in group.quantities().values()]
