"""The statistics of the real devices' allocators."""

from __future__ import annotations

from dataclasses import dataclass

import torch

REQUESTED = "requested_bytes.all"
ALLOCATED = "allocated_bytes.all"


@dataclass(frozen=True)
class Statistics:
    """What one device's allocator tells; bytes, but for ``ooms``."""

    requested: int
    requested_peak: int
    allocated: int
    allocated_peak: int
    ooms: int


def statistics() -> list[Statistics]:
    """The statistics of every device."""
    return [_statistics(device) for device in range(torch.cuda.device_count())]


def reset_peaks() -> None:
    """Let the peaks of every device begin at what is in use now."""
    for device in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(device)


def live_bytes() -> int:
    """Requested bytes that are in use on all devices together."""
    return sum(device.requested for device in statistics())


def _statistics(device: int) -> Statistics:
    told = torch.cuda.memory_stats(device)
    return Statistics(
        requested=told.get(f"{REQUESTED}.current", 0),
        requested_peak=told.get(f"{REQUESTED}.peak", 0),
        allocated=told.get(f"{ALLOCATED}.current", 0),
        allocated_peak=told.get(f"{ALLOCATED}.peak", 0),
        ooms=told.get("num_ooms", 0),
    )
