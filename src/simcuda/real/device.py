"""Measure on real CUDA devices, with the interface of the simulated ones."""

from __future__ import annotations

import functools
import heapq
import json
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import torch
from torch.autograd.profiler import profile

from simcuda.ledger import NOWHERE
from simcuda.measurement import METRICS, Measurement
from simcuda.profile import MIB, Profile
from simcuda.real.availability import profile_of, why_not
from simcuda.real.marks import BEGIN, END, Marks, Place, mark
from simcuda.real.trace import IncompleteTraceError, ProfilerTrace, count

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


NEVER_COUNTED = ("drains", "hazards", "host_peak_bytes")
"""A real device tells neither what streams hold, nor the order of accesses, nor what the host allocates."""

CHANGES = {"alloc", "free_requested", "free_completed"}
"""Actions in an allocator's trace that change the memory in use."""


class RealMeasurement(Measurement):
    """The cost of a block on real devices; final once the block has ended.

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
        counted = ", ".join(
            f"{name}={count}" for name, count in counts.items() if count
        )
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
        workspace = int(told()) if told else assumed
        return profile_of(
            properties, str(torch.__version__), str(torch.version.cuda), workspace
        )

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
            with _observed() as seen:
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
        raise CannotCountError(
            f"{count} devices are needed, and this machine has {there}"
        )
    _warm_up()
    with limited_memory(count, capacity):
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


def _fill(measurement: RealMeasurement, seen: _Observation) -> None:
    try:
        counted = count(ProfilerTrace(seen.events), seen.marks.places)
    except IncompleteTraceError as error:
        raise CannotCountError(str(error)) from None
    for metric, amount in counted.totals.items():
        setattr(measurement, metric, amount)
    made = replay_allocations(seen.entries, counted.allocations)
    measurement.allocations = len(made.sizes)
    measurement.largest_allocation = max(made.sizes, default=0)
    measurement._sites.update((place, times) for place, times in counted.sites.items())
    measurement._allowed.update(counted.allowed)
    measurement._sites.update(
        {(*place, "allocations"): times for place, times in made.sites.items()}
    )
    measurement.ooms = sum(
        after["num_ooms"] - before["num_ooms"] for before, after in seen.statistics
    )
    # One device's statistics tell its peaks; only a replay tells the peak of several together.
    in_use = [
        both
        for both, entries in zip(seen.statistics, seen.entries, strict=False)
        if entries
    ]
    if len(in_use) > 1:
        measurement.peak_bytes = made.peak
        measurement._not_counted = (*NEVER_COUNTED, "peak_allocated_bytes")
    elif in_use:
        ((before, after),) = in_use
        measurement.peak_bytes = (
            after[f"{REQUESTED}.peak"] - before[f"{REQUESTED}.current"]
        )
        measurement.peak_allocated_bytes = (
            after[f"{ALLOCATED}.peak"] - before[f"{ALLOCATED}.current"]
        )


@dataclass
class _Observation:
    """The observations of a block, once it has ended.

    Attributes:
        marks: The marks and places that Python recorded.
        events: The events of the profiler's trace.
        entries: The entries of every device's allocator trace.
        statistics: Those of every device's allocator when the block began, and when it ended.
    """

    marks: Marks = field(default_factory=Marks)
    events: list[dict[str, Any]] = field(default_factory=list)
    entries: list[list[TraceEntry]] = field(default_factory=list)
    statistics: list[tuple[Counter[str], Counter[str]]] = field(default_factory=list)


@contextmanager
def _observed() -> Iterator[_Observation]:
    """Watch the block; what is yielded is filled once it has ended, also by an exception."""
    seen, record_history = (
        _Observation(),
        cast("Any", torch.cuda.memory._record_memory_history),
    )
    # Work that began before, or has not finished at the end, stays out of the trace.
    _finish_all()
    profiler = profile(
        use_cpu=True, use_device="cuda", use_kineto=True, profile_memory=True
    )
    try:
        with profiler:
            record_history("all", context=None, stacks="python", clear_history=True)
            try:
                with _between_marks():
                    for device in range(torch.cuda.device_count()):
                        torch.cuda.reset_peak_memory_stats(device)
                    before = statistics()
                    try:
                        with (
                            seen.marks.following_regions(),
                            seen.marks.following_lines(),
                        ):
                            yield seen
                    finally:
                        seen.statistics = list(zip(before, statistics(), strict=True))
            finally:
                devices = torch.cuda.memory._snapshot()["device_traces"]
                seen.entries = [
                    [each for each in entries if each["action"] in CHANGES]
                    for entries in devices
                ]
                record_history(None)
                _finish_all()
    finally:
        if profiler.kineto_results is not None:
            seen.events = events_of(profiler)


@contextmanager
def _between_marks() -> Iterator[None]:
    """Mark beginning and end by a wait for the device, which the calls' own clock shows too.

    The second one also lets the device finish, so that the profiler gets to know all that it did.
    """
    with mark(BEGIN):
        torch.cuda.synchronize()
    try:
        yield
    finally:
        with mark(END):
            torch.cuda.synchronize()


def events_of(profiler: profile) -> list[dict[str, Any]]:
    """The trace that the profiler exports; its events in Python lack the bytes of copies in some versions."""
    with tempfile.TemporaryDirectory(prefix="simcuda-") as folder:
        file = Path(folder) / "trace.json"
        # A file, because the exporter takes nothing else.
        profiler.export_chrome_trace(str(file))  # type: ignore[no-untyped-call]  # has no annotations
        events: list[dict[str, Any]] = json.loads(file.read_bytes())["traceEvents"]
    return events


def _finish_all() -> None:
    """Wait for every device that is in use."""
    for device in range(torch.cuda.device_count()):
        if torch._C._cuda_hasPrimaryContext(device):  # type: ignore[attr-defined]  # has no stub
            torch.cuda.synchronize(device)


def _usage() -> tuple[int, int, int]:
    """Bytes in use now, for measurements; the host's are not known."""
    devices = statistics()
    requested, allocated = (
        sum(each[f"{kind}.current"] for each in devices)
        for kind in (REQUESTED, ALLOCATED)
    )
    return requested, allocated, 0


def statistics() -> list[Counter[str]]:
    """The statistics of every device's allocator, by PyTorch's names; what it leaves out is 0."""
    return [
        Counter(torch.cuda.memory_stats(device))
        for device in range(torch.cuda.device_count())
    ]


@contextmanager
def limited_memory(count: int, capacity: int | None) -> Iterator[None]:
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
            torch.cuda.set_per_process_memory_fraction(
                min(1.0, (limit + 0.5) / total), device
            )
        yield
    finally:
        for device in range(count):
            torch.cuda.set_per_process_memory_fraction(1.0, device)


def replay_allocations(
    devices: Sequence[Iterable[TraceEntry]], placed: Iterable[tuple[int, Place]]
) -> Allocations:
    """Replay what the allocators traced: counts of allocations, and the lines of code behind them.

    The entries of each device have a time, in microseconds, which orders them; the profiler's clock is
    another one, so that its allocations, whose places are known, are found again by their addresses.
    """
    # An address is handed out again and again: the places of one are in the order of its allocations.
    places: dict[int, deque[Place]] = {}
    for address, place in placed:
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
