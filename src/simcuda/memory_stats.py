"""The caching allocator's statistics, under the names of ``torch.cuda.memory_stats``."""

from __future__ import annotations

POOLS = ("small_pool", "large_pool")


class Stat:
    """One quantity over time: its value now, its peak, and all that was ever added and taken away."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount: int) -> None:
        """Raise the value, and the peak with it."""
        self.current += amount
        self.allocated += amount
        self.peak = max(self.peak, self.current)

    def drop(self, amount: int) -> None:
        """Lower the value."""
        self.current -= amount
        self.freed += amount

    def as_dict(self) -> dict[str, int]:
        """The four numbers by the names PyTorch gives them."""
        return {name: getattr(self, name) for name in ("current", "peak", "allocated", "freed")}


class PoolStats:
    """The quantities that PyTorch keeps for each pool and for both together; bytes where the name says so."""

    NAMES = (
        "allocation",
        "segment",
        "active",
        "inactive_split",
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
        "inactive_split_bytes",
        "requested_bytes",
    )
    __slots__ = NAMES

    def __init__(self) -> None:
        self.allocation = Stat()
        self.segment = Stat()
        self.active = Stat()
        self.inactive_split = Stat()
        self.allocated_bytes = Stat()
        self.reserved_bytes = Stat()
        self.active_bytes = Stat()
        self.inactive_split_bytes = Stat()
        self.requested_bytes = Stat()

    def stats(self) -> dict[str, Stat]:
        """Every quantity by name."""
        return {name: getattr(self, name) for name in self.NAMES}


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
        for stat in self._all_stats():
            stat.peak = stat.current

    def reset_accumulated(self) -> None:
        """Let every total and counter start again from zero."""
        for stat in self._all_stats():
            stat.allocated = stat.freed = 0
        self.num_alloc_retries = self.num_ooms = 0

    def as_nested_dict(self) -> dict[str, object]:
        """The shape of ``torch.cuda.memory_stats_as_nested_dict``, with 0 for what is not modelled."""
        groups = {"all": self.both, **self.pools}
        nested: dict[str, object] = {
            name: {group: stats.stats()[name].as_dict() for group, stats in groups.items()}
            for name in PoolStats.NAMES
        }
        nested |= {name: getattr(self, name) for name in self.COUNTERS}
        unused = Stat().as_dict()
        return nested | {"oversize_allocations": unused, "oversize_segments": unused, "max_split_size": -1}

    def _all_stats(self) -> list[Stat]:
        return [stat for group in (self.both, *self.pools.values()) for stat in group.stats().values()]
