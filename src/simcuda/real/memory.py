"""The real devices' allocators: what they tell, and how much they may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def limited(count: int, capacity: int | None) -> Iterator[None]:
    """Let the allocators of the first ``count`` devices take ``capacity`` bytes beyond what stays in use."""
    if capacity is None:
        yield
        return
    # What cuBLAS keeps and what is cached would take room that a fresh device has.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    try:
        for device in range(count):
            _set_limit(device, capacity + torch.cuda.memory_reserved(device))
        yield
    finally:
        for device in range(count):
            torch.cuda.set_per_process_memory_fraction(1.0, device)


def _set_limit(device: int, nbytes: int) -> None:
    """PyTorch takes a fraction and rounds down: half a byte more keeps it from missing one."""
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (nbytes + 0.5) / total), device)


def _statistics(device: int) -> Statistics:
    told = torch.cuda.memory_stats(device)
    return Statistics(
        requested=told.get(f"{REQUESTED}.current", 0),
        requested_peak=told.get(f"{REQUESTED}.peak", 0),
        allocated=told.get(f"{ALLOCATED}.current", 0),
        allocated_peak=told.get(f"{ALLOCATED}.peak", 0),
        ooms=told.get("num_ooms", 0),
    )
