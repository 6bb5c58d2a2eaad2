"""Measure on real CUDA devices, with the interface of the simulated ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from simcuda.measurement import METRICS, Measurement
from simcuda.profile import MIB, Profile
from simcuda.real import memory
from simcuda.real.availability import profile_of, why_not
from simcuda.real.counting import count
from simcuda.real.session import Observation, observed
from simcuda.real.trace import IncompleteTraceError, ProfilerTrace

NEVER_COUNTED = ("drains", "hazards", "host_peak_bytes")
"""A real device tells neither what streams hold, nor the order of accesses, nor what the host allocates."""


class RealMeasurement(Measurement):
    """What a block cost on real devices; final once the block has ended.

    What is ``not_counted`` is unknown, not 0.
    """

    _not_counted: tuple[str, ...] = NEVER_COUNTED

    @property
    def not_counted(self) -> tuple[str, ...]:
        """Metrics that these devices cannot count: reading one raises ``AttributeError``."""
        return self._not_counted

    def __getattribute__(self, name: str) -> Any:
        """Refuse what was not counted."""
        if name in super().__getattribute__("_not_counted"):
            raise AttributeError(f"{name} is not counted on a real device")
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        """All that was counted and is not 0."""
        counts = {name: getattr(self, name, None) for name in METRICS}
        counted = ", ".join(f"{name}={count}" for name, count in counts.items() if count)
        return f"{type(self).__name__}({counted})"


class CannotCountError(RuntimeError):
    """Costs cannot be counted on a real device, or the counts are incomplete."""


class RealCuda:
    """The real devices, as measuring code sees them; ``real_device`` makes it."""

    @property
    def profile(self) -> Profile:
        """The profile that describes the first device: under it a simulation is comparable."""
        properties = torch.cuda.get_device_properties(0)
        # PyTorch tells what it gives cuBLAS from 2.13 on; before, it took 32 MiB from Hopper on.
        told = getattr(torch.backends.cuda, "cublas_workspace_size", None)
        assumed = 32 * MIB if properties.major >= 9 else 8_519_680
        return profile_of(properties, str(torch.version.cuda), int(told()) if told else assumed)

    @contextmanager
    def measure(self) -> Iterator[Measurement]:
        """Count what the code in this block costs; the measurement is final once the block has ended.

        Raises:
            CannotCountError: Another profiler or measurement is active, or the profiler lost events.
        """
        # Two profilers at once would each get a part of the events.
        if torch._C._autograd._profiler_enabled():
            raise CannotCountError("another measurement or profiler is active")
        measurement = RealMeasurement(_usage=_usage, _entry=_usage())
        seen = None
        try:
            with observed() as seen:
                yield measurement
        finally:
            if seen is not None:
                _fill(measurement, seen)

    def live_bytes(self) -> int:
        """Requested bytes that are live now, on all devices together."""
        return _usage()[0]


@contextmanager
def real_device(count: int = 1, *, capacity: int | None = None) -> Iterator[RealCuda]:
    """Measure on real devices within this block.

    Args:
        count: How many devices the code needs.
        capacity: Bytes of memory that each of them is to have, by default all.

    Raises:
        CannotCountError: ``why_not()`` says why, there are fewer devices, or the profiler sees nothing.
    """
    if reason := why_not():
        raise CannotCountError(reason)
    if (there := torch.cuda.device_count()) < count:
        raise CannotCountError(f"{count} devices are needed, and this machine has {there}")
    _warm_up()
    with memory.limited(count, capacity):
        yield RealCuda()


@functools.cache
def _warm_up() -> None:
    """Let the profiler attach to CUDA, which takes a while, and check that it records events.

    The first session of a process may lack events; a second one must not.
    """
    gpu = RealCuda()
    with suppress(CannotCountError), gpu.measure():
        _probe()
    with gpu.measure() as cost:
        _probe()
    # At least these: the allocator may add calls of its own.
    if cost.launches < 2 or cost.stream_syncs < 1 or cost.d2h < 1:
        raise CannotCountError(
            "the profiler does not see what happens on the device: CUPTI may be in use by another tool,"
            " or be kept from this user"
        )


def _probe() -> None:
    """Two kernels, one that fills and one that adds, and a read of their result."""
    (torch.zeros((), device="cuda") + 1).item()


def _fill(measurement: RealMeasurement, seen: Observation) -> None:
    try:
        counted = count(ProfilerTrace(seen.events), seen.marks.places)
    except IncompleteTraceError as error:
        raise CannotCountError(str(error)) from None
    for metric, amount in counted.totals.items():
        setattr(measurement, metric, amount)
    made = memory.replay(seen.entries, seen.marks.allocations)
    measurement.allocations = len(made.sizes)
    measurement.largest_allocation = max(made.sizes, default=0)
    measurement._sites.update((place, times) for place, times in counted.sites.items())
    measurement._allowed.update(counted.allowed)
    measurement._sites.update({(*place, "allocations"): times for place, times in made.sites.items()})
    measurement.ooms = sum(after.ooms - before.ooms for before, after in seen.statistics)
    # One device's statistics tell its peaks; only a replay tells the peak of several together.
    in_use = [place for place, entries in enumerate(seen.entries) if entries]
    if len(in_use) > 1:
        measurement.peak_bytes = made.peak
        measurement._not_counted = (*NEVER_COUNTED, "peak_allocated_bytes")
    elif in_use:
        before, after = seen.statistics[in_use[0]]
        measurement.peak_bytes = after.requested_peak - before.requested
        measurement.peak_allocated_bytes = after.allocated_peak - before.allocated


def _usage() -> tuple[int, int, int]:
    """Bytes in use now, as measurements ask for them; those of the host are not known."""
    devices = memory.statistics()
    return sum(device.requested for device in devices), sum(device.allocated for device in devices), 0
