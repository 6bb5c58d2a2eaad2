"""The real devices' allocators: their statistics, limits and traces."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from simcuda.real.marks import NOWHERE, Place

TraceEntry = Mapping[str, Any]
"""One entry of the ``device_traces`` of ``torch.cuda.memory._snapshot``."""


@dataclass(frozen=True)
class MemoryStatistics:
    """The statistics of one device's allocator, in bytes, except the count ``ooms``."""

    requested: int
    requested_peak: int
    allocated: int
    allocated_peak: int
    ooms: int


@dataclass(frozen=True)
class Allocations:
    """The requests to the allocators of all devices.

    Attributes:
        sizes: Requested bytes of every allocation.
        peak: Most requested bytes in use by the traced allocations, all devices together. Nothing that was
            in use before has to be subtracted, since it is not in the trace.
        sites: How often each place allocated.
    """

    sizes: tuple[int, ...]
    peak: int
    sites: Counter[Place]


def statistics() -> list[MemoryStatistics]:
    """The statistics of every device."""
    raw = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
    return [
        MemoryStatistics(
            requested=stats.get("requested_bytes.all.current", 0),
            requested_peak=stats.get("requested_bytes.all.peak", 0),
            allocated=stats.get("allocated_bytes.all.current", 0),
            allocated_peak=stats.get("allocated_bytes.all.peak", 0),
            ooms=stats.get("num_ooms", 0),
        )
        for stats in raw
    ]


@contextmanager
def memory_limit(count: int, capacity: int | None) -> Iterator[None]:
    """Let the first ``count`` devices take ``capacity`` bytes each beyond what stays in use; then undo it."""
    if capacity is None:
        yield
        return
    # What cuBLAS and the cache hold counts against the limit, but would be free on a fresh device.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    totals = [torch.cuda.get_device_properties(device).total_memory for device in range(count)]
    before = [
        round(torch.cuda.get_per_process_memory_fraction(device) * totals[device]) for device in range(count)
    ]
    try:
        _allow([capacity + torch.cuda.memory_reserved(device) for device in range(count)], totals)
        yield
    finally:
        _allow(before, totals)


def _allow(limits: Sequence[int], totals: Sequence[int]) -> None:
    for device, (limit, total) in enumerate(zip(limits, totals, strict=True)):
        # PyTorch takes a fraction and rounds down; half a byte more makes the result the limit exactly.
        torch.cuda.set_per_process_memory_fraction(min(1.0, (limit + 0.5) / total), device)


def replay(devices: Sequence[Iterable[TraceEntry]], announced: Iterable[tuple[int, Place]]) -> Allocations:
    """Replay what the allocators traced: counts of allocations, and the lines of code behind them.

    The entries of several devices are ordered by their time, in microseconds.

    Args:
        devices: The entries of each device.
        announced: Address and place of every allocation that PyTorch reported.
    """
    # An address is reused, so each has a queue of places, in the order of its allocations. The devices of a
    # process share one range of addresses, so the device need not be part of the key.
    places: dict[int, deque[Place]] = {}
    for address, place in announced:
        places.setdefault(address, deque()).append(place)
    sizes: list[int] = []
    sites: Counter[Place] = Counter()
    used = peak = 0
    for entry in heapq.merge(*devices, key=itemgetter("time_us")):
        if entry["action"] == "alloc":
            sizes.append(entry["size"])
            places_here = places.get(entry["addr"])
            sites[places_here.popleft() if places_here else NOWHERE] += 1
            used += entry["size"]
            peak = max(peak, used)
        elif entry["action"] == "free_completed":
            used -= entry["size"]
    return Allocations(tuple(sizes), peak, sites)
