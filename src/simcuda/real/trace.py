"""What the profiler saw, as plain records read from a trace that it exported."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

MARK = "simcuda "
"""The prefix of our own marks in the trace."""
RUNTIME = "cuda_runtime"
CALLS = (RUNTIME, "cuda_driver")
"""The categories of calls of CUDA."""
OF_ATEN = (
    *("at::", "(anonymous namespace)::", "at_cuda_detail::", "c10::", "cub::", "cunn_", "thrust::"),
    "multi_tensor_apply_kernel",
)
"""How names of ATen's kernels begin, those of CUB and Thrust compiled into it among them.

All others are of libraries (cuBLAS, cuDNN, CUTLASS, NCCL, flash attention) or somebody's own.
"""


class IncompleteTraceError(RuntimeError):
    """The profiler lost events, so that its counts would be too low."""


@dataclass(frozen=True, slots=True)
class CudaCall:
    """A call of the CUDA runtime or driver by the host.

    Attributes:
        name: Such as ``cudaLaunchKernel``, without the ending for the kind of default stream.
        start: Microseconds on the trace's clock.
        end: The same.
        correlation: Number that the records of the device's work for it have, too.
        op: Number of the ATen operation that it was made for; 0 where none is known.
        thread: Process and thread, as one text.
    """

    name: str
    start: float
    end: float
    correlation: int
    op: int = 0
    thread: str = ""


@dataclass(frozen=True, slots=True)
class DeviceCopy:
    """A copy that a device made: ``name`` is such as ``Memcpy HtoD (Pageable -> Device)``."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class TraceMark:
    """A mark that we left in the trace; see ``marks``."""

    text: str
    start: float
    end: float


class CudaRecords:
    """What a trace in Chrome's format, as Kineto writes it, has of CUDA, by correlation.

    Attributes:
        calls: The calls of CUDA.
        kernels: Names of the kernels that ran for a call.
        copies: The copies that devices made for a call.
        memsets: The calls for which a device filled memory.
    """

    def __init__(self) -> None:
        self.calls: dict[int, CudaCall] = {}
        self.kernels: defaultdict[int, list[str]] = defaultdict(list)
        self.copies: defaultdict[int, list[DeviceCopy]] = defaultdict(list)
        self.memsets: set[int] = set()

    def add(self, event: Mapping[str, Any], category: str) -> None:
        """Keep what an event says of CUDA; raises what a missing or wrong field does."""
        arguments = event.get("args") or {}
        if category in CALLS:
            number, start = int(arguments.get("correlation", 0)), event["ts"]
            # The endings say which default stream the caller was compiled for.
            name = str(event["name"]).removesuffix("_ptsz").removesuffix("_ptds")
            if not start < inf:
                raise ValueError(f"{name} has no time")
            # Until 2021 Kineto wrote the second key.
            op = int(arguments.get("External id", arguments.get("external id", 0)))
            # A driver call that the runtime makes for one of its own calls has the same number.
            if category == RUNTIME or number not in self.calls:
                end = start + max(event.get("dur", 0), 0)
                self.calls[number] = CudaCall(name, start, end, number, op, thread_of(event))
        elif category == "kernel":
            self.kernels[int(arguments["correlation"])].append(sys.intern(str(event["name"])))
        elif category == "gpu_memcpy":
            copy = DeviceCopy(sys.intern(str(event["name"])), int(arguments.get("bytes", 0)))
            self.copies[int(arguments["correlation"])].append(copy)
        elif category == "gpu_memset":
            self.memsets.add(int(arguments["correlation"]))


class ProfilerTrace(CudaRecords):
    """Everything in a trace of ours that is counted.

    Attributes:
        marks: The marks that we left, in the order of their start.
        operations: Names of ATen operations by their number.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        super().__init__()
        self.marks: list[TraceMark] = []
        self.operations: dict[int, str] = {}
        for event in events:
            if event.get("ph") == "X":
                self.add(event, str(event.get("cat")))
        self.marks.sort(key=lambda mark: mark.start)

    def add(self, event: Mapping[str, Any], category: str) -> None:
        """Keep an event; operations and marks too."""
        super().add(event, category)
        name = str(event["name"])
        if category == "cpu_op" and name.startswith(MARK):
            start = event["ts"]
            self.marks.append(TraceMark(name.removeprefix(MARK), start, start + event.get("dur", 0)))
        elif category == "cpu_op":
            self.operations[int(event.get("args", {}).get("External id", 0))] = name


def thread_of(event: Mapping[str, Any]) -> str:
    """Process and thread of an event, as one text."""
    return f"{event['pid']}/{event['tid']}"


def is_of_aten(kernel: str) -> bool:
    """Whether ATen launches a kernel of this name itself, in a number that follows from the arguments."""
    return kernel.removeprefix("void ").startswith(OF_ATEN)
