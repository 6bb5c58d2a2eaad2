"""Watch one block of code on real devices: switch on what records it, and off again afterwards."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import profile

from simcuda.real.marks import BEGIN, END, Marks, mark
from simcuda.real.memory import MemoryStatistics, TraceEntry, statistics

CHANGES = {"alloc", "free_requested", "free_completed"}
"""Actions in an allocator's trace that change the memory in use."""


@dataclass
class Observation:
    """What was seen of a block, once it has ended.

    Attributes:
        marks: The marks and places that Python recorded.
        events: The events of the profiler's trace.
        entries: The entries of every device's allocator trace.
        statistics: Those of every device's allocator when the block began, and when it ended.
    """

    marks: Marks = field(default_factory=Marks)
    events: list[dict[str, Any]] = field(default_factory=list)
    entries: list[list[TraceEntry]] = field(default_factory=list)
    statistics: list[tuple[MemoryStatistics, MemoryStatistics]] = field(default_factory=list)


@contextmanager
def observed() -> Iterator[Observation]:
    """Watch the block; what is yielded is filled once it has ended, also by an exception."""
    seen = Observation()
    with _profiled(seen), _allocations_traced(seen):
        # The beginning and the end are marked by a wait for the device, which the calls' own clock shows too.
        # The second one also lets the device finish, so that the profiler gets to know all that it did.
        with mark(BEGIN):
            torch.cuda.synchronize()
        try:
            for device in range(torch.cuda.device_count()):
                torch.cuda.reset_peak_memory_stats(device)
            before = statistics()
            try:
                with seen.marks.listening(), seen.marks.following_lines():
                    yield seen
            finally:
                seen.statistics = list(zip(before, statistics(), strict=True))
        finally:
            with mark(END):
                torch.cuda.synchronize()


@contextmanager
def _profiled(seen: Observation) -> Iterator[None]:
    """Keep work that began before, or has not finished at the end, out of the trace."""
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
    """The trace that the profiler exports; its events in Python lack the bytes of copies in some versions."""
    with tempfile.TemporaryDirectory(prefix="simcuda-") as folder:
        file = Path(folder) / "trace.json"
        # A file, because the exporter takes nothing else.
        profiler.export_chrome_trace(str(file))  # type: ignore[no-untyped-call]  # has no annotations
        events: list[dict[str, Any]] = json.loads(file.read_bytes())["traceEvents"]
    return events


@contextmanager
def _allocations_traced(seen: Observation) -> Iterator[None]:
    record: Any = torch.cuda.memory._record_memory_history
    record("all", context=None, stacks="python", clear_history=True)
    try:
        yield
    finally:
        devices = torch.cuda.memory._snapshot()["device_traces"]
        seen.entries = [[entry for entry in entries if entry["action"] in CHANGES] for entries in devices]
        record(None)


def _finish_all() -> None:
    """Wait for every device that is in use."""
    for device in range(torch.cuda.device_count()):
        if torch._C._cuda_hasPrimaryContext(device):  # type: ignore[attr-defined]  # has no stub
            torch.cuda.synchronize(device)
