"""Watch one block of code on real devices: everything that must be switched on before and off after it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import profile

from simcuda.real import allocations, memory, trace
from simcuda.real.lines import followed
from simcuda.real.marks import BEGIN, END, Marks, mark

CHANGES = {"alloc", "free_requested", "free_completed"}


@dataclass
class Seen:
    """What was seen of a block, once it has ended.

    Attributes:
        marks: What Python told of.
        events: The events of the profiler's trace.
        entries: The entries of every device's allocator trace.
        statistics: What every device's allocator told when the block began, and when it ended.
    """

    marks: Marks = field(default_factory=Marks)
    events: list[dict[str, Any]] = field(default_factory=list)
    entries: list[list[allocations.Entry]] = field(default_factory=list)
    statistics: list[tuple[memory.Statistics, memory.Statistics]] = field(default_factory=list)

    @property
    def trace(self) -> trace.Trace:
        """The profiler's trace."""
        return trace.read(self.events)

    @property
    def allocations(self) -> allocations.Allocations:
        """The allocators' traces."""
        return allocations.read(self.entries, self.marks.allocations)


@contextmanager
def watched() -> Iterator[Seen]:
    """Watch the block; what is yielded is filled once it has ended, also by an exception."""
    seen = Seen()
    with _profiled(seen), _allocations_traced(seen), _bounded():
        memory.reset_peaks()
        before = memory.statistics()
        try:
            with seen.marks.listening(), followed(seen.marks):
                yield seen
        finally:
            seen.statistics = list(zip(before, memory.statistics(), strict=True))


@contextmanager
def _bounded() -> Iterator[None]:
    """Mark the beginning and the end by a wait for the device, which the calls' own clock shows too.

    The second one also lets the device finish, so that the profiler gets to know all that it did.
    """
    with mark(BEGIN):
        torch.cuda.synchronize()
    try:
        yield
    finally:
        with mark(END):
            torch.cuda.synchronize()


@contextmanager
def _profiled(seen: Seen) -> Iterator[None]:
    """Nothing that was begun before, or is not finished at the end, gets into the trace."""
    _finish_all()
    profiler = profile(use_cpu=True, use_device="cuda", use_kineto=True)
    try:
        with profiler:
            try:
                yield
            finally:
                _finish_all()
    finally:
        if profiler.kineto_results is not None:
            seen.events = events_of(profiler)


def events_of(profiler: profile) -> list[dict[str, Any]]:
    """What the profiler exports; its events in Python do not tell the bytes of copies in every version."""
    with tempfile.TemporaryDirectory(prefix="simcuda-") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))  # type: ignore[no-untyped-call]  # has no annotations
        events: list[dict[str, Any]] = json.loads(file.read_bytes())["traceEvents"]
    return events


@contextmanager
def _allocations_traced(seen: Seen) -> Iterator[None]:
    record: Any = torch.cuda.memory._record_memory_history
    record("all", context=None, stacks="python", clear_history=True)
    try:
        yield
    finally:
        seen.entries = _entries(torch.cuda.memory._snapshot()["device_traces"])
        record(None)


def _entries(devices: Iterable[Iterable[allocations.Entry]]) -> list[list[allocations.Entry]]:
    """Those that say that what is in use has changed."""
    return [[entry for entry in entries if entry["action"] in CHANGES] for entries in devices]


def _finish_all() -> None:
    """Wait for every device that is in use."""
    for device in range(torch.cuda.device_count()):
        if torch._C._cuda_hasPrimaryContext(device):  # type: ignore[attr-defined]  # has no stub
            torch.cuda.synchronize(device)
