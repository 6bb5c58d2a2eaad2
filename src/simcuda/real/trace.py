"""What the profiler saw, as plain records read from the trace that it exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "simcuda "
"""The prefix of our own marks in the trace."""
CALLS = ("cuda_runtime", "cuda_driver")
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
    """

    name: str
    start: float
    end: float
    correlation: int
    op: int = 0


@dataclass(frozen=True, slots=True)
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
        library_kernels: Those of them that are not ATen's own.
        copies: The copies that devices made.
        marks: The marks that we left.
        operations: Names of ATen operations by their number.
    """

    calls: tuple[CudaCall, ...]
    kernels: tuple[int, ...]
    copies: tuple[DeviceCopy, ...]
    marks: tuple[TraceMark, ...]
    operations: Mapping[int, str]
    library_kernels: frozenset[int] = frozenset()


def is_of_aten(kernel: str) -> bool:
    """Whether ATen launches a kernel of this name itself, in a number that follows from the arguments."""
    return kernel.removeprefix("void ").startswith(OF_ATEN)


def cuda_call(event: Mapping[str, Any]) -> CudaCall:
    """The call that an event of the categories ``CALLS`` records."""
    # The endings say which default stream the caller was compiled for.
    name = str(event["name"]).removesuffix("_ptsz").removesuffix("_ptds")
    arguments, start = event.get("args", {}), event["ts"]
    # Until 2021 Kineto wrote the second key.
    op = arguments.get("External id", arguments.get("external id", 0))
    return CudaCall(name, start, start + event.get("dur", 0), int(arguments.get("correlation", 0)), int(op))


def device_copy(event: Mapping[str, Any]) -> DeviceCopy:
    """The copy that an event of the category ``gpu_memcpy`` records."""
    arguments = event.get("args", {})
    return DeviceCopy(
        str(event["name"]), int(arguments.get("correlation", 0)), int(arguments.get("bytes", 0))
    )


def read(events: Iterable[Mapping[str, Any]]) -> ProfilerTrace:
    """The records in the ``traceEvents`` of a trace in Chrome's format, as Kineto writes it."""
    calls: dict[str, dict[int, CudaCall]] = {category: {} for category in CALLS}
    kernels, copies, marks, operations = [], [], [], {}
    of_libraries: set[int] = set()
    for event in events:
        if event.get("ph") != "X":
            continue
        name, category, start = str(event["name"]), str(event.get("cat")), event["ts"]
        arguments = event.get("args", {})
        if category in calls:
            call = cuda_call(event)
            calls[category][call.correlation] = call
        elif category == "kernel":
            kernels.append(int(arguments.get("correlation", 0)))
            if not is_of_aten(name):
                of_libraries.add(kernels[-1])
        elif category == "gpu_memcpy":
            copies.append(device_copy(event))
        elif category == "cpu_op" and name.startswith(MARK):
            marks.append(TraceMark(name.removeprefix(MARK), start, start + event.get("dur", 0)))
        elif category == "cpu_op":
            operations[int(arguments.get("External id", 0))] = name
    # A driver call that the runtime makes for one of its own calls has the same number.
    made = calls["cuda_driver"] | calls["cuda_runtime"]
    return ProfilerTrace(
        calls=tuple(sorted(made.values(), key=lambda call: call.start)),
        kernels=tuple(kernels),
        copies=tuple(copies),
        marks=tuple(sorted(marks, key=lambda mark: mark.start)),
        operations=operations,
        library_kernels=frozenset(of_libraries),
    )
