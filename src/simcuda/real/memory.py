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

from simcuda.ledger import NOWHERE
from simcuda.real.marks import Place

REQUESTED = "requested_bytes.all"
ALLOCATED = "allocated_bytes.all"
"""How the names of statistics begin; they end in ``.current`` or ``.peak``."""

TraceEntry = Mapping[str, Any]
"""One entry of the ``device_traces`` of ``torch.cuda.memory._snapshot``."""


@dataclass(frozen=True)
class Allocations:
    """The requests to the allocators of all devices.

    Attributes:
        sizes: Requested bytes of every allocation.
        peak: Most requested bytes in use above those at the beginning, all devices together.
        sites: How often each place allocated.
    """

    sizes: tuple[int, ...]
    peak: int
    sites: Counter[Place]


def statistics() -> list[Counter[str]]:
    """The statistics of every device's allocator, by PyTorch's names; what it leaves out is 0."""
    return [Counter(torch.cuda.memory_stats(device)) for device in range(torch.cuda.device_count())]


@contextmanager
def limited(count: int, capacity: int | None) -> Iterator[None]:
    """Let the allocators of the first ``count`` devices take ``capacity`` bytes beyond what stays in use."""
    if capacity is None:
        yield
        return
    # Memory that cuBLAS keeps or that is cached would be missing, but is free on a fresh device.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    try:
        for device in range(count):
            limit = capacity + torch.cuda.memory_reserved(device)
            total = torch.cuda.get_device_properties(device).total_memory
            # PyTorch takes a fraction and rounds down: half a byte more keeps it from missing one.
            torch.cuda.set_per_process_memory_fraction(min(1.0, (limit + 0.5) / total), device)
        yield
    finally:
        for device in range(count):
            torch.cuda.set_per_process_memory_fraction(1.0, device)


def replay(devices: Sequence[Iterable[TraceEntry]], announced: Iterable[tuple[int, Place]]) -> Allocations:
    """Replay what the allocators traced: counts of allocations, and the lines of code behind them.

    The entries of several devices are ordered by their time, in microseconds.

    Args:
        devices: The entries of each device.
        announced: Address and place of every allocation that PyTorch reported.
    """
    # An address is handed out again and again: the places of one are in the order of its allocations.
    places: dict[int, deque[Place]] = {}
    for address, place in announced:
        places.setdefault(address, deque()).append(place)
    sizes: list[int] = []
    sites: Counter[Place] = Counter()
    used = peak = 0
    for entry in heapq.merge(*devices, key=itemgetter("time_us")):
        if entry["action"] == "alloc":
            sizes.append(entry["size"])
            told = places.get(entry["addr"])
            sites[told.popleft() if told else NOWHERE] += 1
            used += entry["size"]
            peak = max(peak, used)
        elif entry["action"] == "free_completed":
            used -= entry["size"]
    return Allocations(tuple(sizes), peak, sites)
