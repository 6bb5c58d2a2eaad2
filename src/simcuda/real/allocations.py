"""From the allocator's own trace to counts of allocations, and to the lines of code behind them."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from simcuda.real.marks import NOWHERE, Place

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Allocations:
    """What was asked of the allocators of all devices.

    Attributes:
        sizes: Requested bytes of every allocation.
        peak: Most requested bytes in use above those at the beginning, all devices together.
        sites: How often each place allocated.
    """

    sizes: tuple[int, ...]
    peak: int
    sites: Counter[Place]


def read(devices: Sequence[Iterable[Entry]], announced: Iterable[tuple[int, Place]]) -> Allocations:
    """Replay the ``device_traces`` of ``torch.cuda.memory._snapshot``.

    The entries of several devices are ordered by their time, in microseconds.

    Args:
        devices: The entries of each device.
        announced: Address and place of every allocation that PyTorch told of.
    """
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
