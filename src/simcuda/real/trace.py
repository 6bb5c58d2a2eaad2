"""What the profiler saw, as plain records read from the trace that it exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "simcuda "
"""The prefix of our own marks in the trace."""


@dataclass(frozen=True)
class CudaCall:
    """A call of the CUDA runtime or driver by the host.

    Attributes:
        name: Such as ``cudaLaunchKernel``, without the ending for the kind of default stream.
        start: Microseconds on the trace's clock.
        end: The same.
        correlation: Number that the records of the device's work for it have, too.
        op: Number of the ATen operation that it was made for; 0 where none is known.
    """

    name: str
    start: float
    end: float
    correlation: int
    op: int = 0


@dataclass(frozen=True)
class DeviceCopy:
    """A copy that a device made: ``name`` is such as ``Memcpy HtoD (Pageable -> Device)``."""

    name: str
    correlation: int
    nbytes: int


@dataclass(frozen=True)
class TraceMark:
    """A mark that we left in the trace; see ``marks``."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class ProfilerTrace:
    """Everything in a trace that is counted, calls and marks in the order of their start.

    Attributes:
        calls: The calls of CUDA.
        kernels: The correlation of every kernel that ran.
        copies: The copies that devices made.
        marks: The marks that we left.
        operations: Names of ATen operations by their number.
    """

    calls: tuple[CudaCall, ...]
    kernels: tuple[int, ...]
    copies: tuple[DeviceCopy, ...]
    marks: tuple[TraceMark, ...]
    operations: Mapping[int, str]


def read(events: Iterable[Mapping[str, Any]]) -> ProfilerTrace:
    """The records in the ``traceEvents`` of a trace in Chrome's format, as Kineto writes it."""
    calls: dict[str, dict[int, CudaCall]] = {"cuda_driver": {}, "cuda_runtime": {}}
    kernels, copies, marks, operations = [], [], [], {}
    for event in events:
        if event.get("ph") != "X":
            continue
        name, category, start = str(event["name"]), str(event.get("cat")), event["ts"]
        end = start + event.get("dur", 0)
        arguments = event.get("args", {})
        correlation, op = int(arguments.get("correlation", 0)), int(arguments.get("External id", 0))
        if category in calls:
            # The endings say which default stream the caller was compiled for.
            plain = name.removesuffix("_ptsz").removesuffix("_ptds")
            calls[category][correlation] = CudaCall(plain, start, end, correlation, op)
        elif category == "kernel":
            kernels.append(correlation)
        elif category == "gpu_memcpy":
            copies.append(DeviceCopy(name, correlation, int(arguments.get("bytes", 0))))
        elif category == "cpu_op" and name.startswith(MARK):
            marks.append(TraceMark(name.removeprefix(MARK), start, end))
        elif category == "cpu_op":
            operations[op] = name
    # A driver call that the runtime makes for one of its own calls has the same number.
    made = calls["cuda_driver"] | calls["cuda_runtime"]
    return ProfilerTrace(
        calls=tuple(sorted(made.values(), key=lambda call: call.start)),
        kernels=tuple(kernels),
        copies=tuple(copies),
        marks=tuple(sorted(marks, key=lambda mark: mark.start)),
        operations=operations,
    )
