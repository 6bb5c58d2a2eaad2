"""Count an exported trace of the profiler, and find the lines of code behind its events."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import inf
from typing import Any

from simcuda.ledger import NOWHERE
from simcuda.real.marks import BEGIN, END, LINE, MARK, REGION, Place

RUNTIME = "cuda_runtime"
CALLS = (RUNTIME, "cuda_driver")
"""The categories of calls of CUDA."""
MEMORY_CHANGE = "[memory]"
"""The name of an event that tells of a change of memory."""
ON_CUDA = 1
"""The type of device of such an event."""
OF_ATEN = (
    *(
        "at::",
        "(anonymous namespace)::",
        "at_cuda_detail::",
        "c10::",
        "cub::",
        "cunn_",
        "thrust::",
    ),
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


@dataclass(eq=False)
class CudaRecords:
    """The CUDA events of a trace in Chrome's format, as Kineto writes it, by correlation.

    Attributes:
        calls: The calls of CUDA.
        kernels: Names of the kernels that ran for a call.
        copies: The copies that devices made for a call.
        memsets: The calls for which a device filled memory.
    """

    calls: dict[int, CudaCall] = field(default_factory=dict)
    kernels: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    copies: dict[int, list[DeviceCopy]] = field(
        default_factory=lambda: defaultdict(list)
    )
    memsets: set[int] = field(default_factory=set)

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
                self.calls[number] = CudaCall(
                    name, start, end, number, op, thread_of(event)
                )
        elif category == "kernel":
            self.kernels[int(arguments["correlation"])].append(
                sys.intern(str(event["name"]))
            )
        elif category == "gpu_memcpy":
            copy = DeviceCopy(
                sys.intern(str(event["name"])), int(arguments.get("bytes", 0))
            )
            self.copies[int(arguments["correlation"])].append(copy)
        elif category == "gpu_memset":
            self.memsets.add(int(arguments["correlation"]))


class ProfilerTrace(CudaRecords):
    """Everything in a trace of ours that is counted.

    Attributes:
        marks: The marks that we left, in the order of their start.
        operations: Names of ATen operations by their number.
        allocations: Time and address of every allocation on a device, in the order of time.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        super().__init__()
        self.marks: list[TraceMark] = []
        self.operations: dict[int, str] = {}
        self.allocations: list[tuple[float, int]] = []
        for event in events:
            if event.get("ph") == "X":
                self.add(event, str(event.get("cat")))
            elif event.get("name") == MEMORY_CHANGE:
                self.add_allocation(event)
        self.allocations.sort()
        self.marks.sort(key=lambda mark: mark.start)

    def add(self, event: Mapping[str, Any], category: str) -> None:
        """Keep an event; operations and marks too."""
        super().add(event, category)
        name = str(event["name"])
        if category == "cpu_op" and name.startswith(MARK):
            start = event["ts"]
            self.marks.append(
                TraceMark(name.removeprefix(MARK), start, start + event.get("dur", 0))
            )
        elif category == "cpu_op":
            self.operations[int(event.get("args", {}).get("External id", 0))] = name

    def add_allocation(self, event: Mapping[str, Any]) -> None:
        """Keep a change of memory if it is an allocation on a device."""
        arguments = event["args"]
        if arguments["Device Type"] == ON_CUDA and arguments["Bytes"] > 0:
            self.allocations.append((event["ts"], int(arguments["Addr"])))


def thread_of(event: Mapping[str, Any]) -> str:
    """Process and thread of an event, as one text."""
    return f"{event['pid']}/{event['tid']}"


def is_of_aten(kernel: str) -> bool:
    """Return True if ATen itself launches a kernel of this name, as often as the arguments say."""
    return kernel.removeprefix("void ").startswith(OF_ATEN)


WAITS = {
    "cudaStreamSynchronize": "stream_syncs",
    "cudaEventSynchronize": "event_syncs",
    "cudaDeviceSynchronize": "device_syncs",
}
"""The metric of every call that makes the host wait."""

MAY_BLOCK = {
    "cudaMalloc",
    "cudaFree",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaFreeHost",
    "cudaMallocManaged",
}
"""Calls in which the host may wait, although waiting is not what they are for."""

LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLaunchCooperativeKernel",
)
COPIES = ("cudaMemcpy", "cuMemcpy")
WITHIN_HOST = "HtoH"
DIRECTIONS = {
    WITHIN_HOST: WITHIN_HOST,
    "HtoD": "h2d",
    "HtoA": "h2d",
    "DtoH": "d2h",
    "AtoH": "d2h",
    "DtoD": "d2d",
    "AtoD": "d2d",
    "DtoA": "d2d",
    "AtoA": "d2d",
    "PtoP": "p2p",
}
PEER = "Peer"
PAGEABLE = "Pageable"
LIBRARY = "<library>"
"""Stands for the file where no line of Python is known; the function is then the ATen operation."""
UNKNOWN: Place = (LIBRARY, 0, LIBRARY)


@dataclass(frozen=True)
class TraceCounts:
    """Totals by metric, how often each place did what, and how much of it each region set apart.

    Of allocations only address and place are told: the allocator counts them.
    """

    totals: Counter[str] = field(default_factory=Counter)
    sites: Counter[tuple[str, int, str, str]] = field(default_factory=Counter)
    allowed: Counter[tuple[str, str, int, str, str]] = field(default_factory=Counter)
    allocations: list[tuple[int, Place]] = field(default_factory=list)

    def add(self, what: str, place: Place, reason: str, nbytes: int = 0) -> None:
        """Count something that a place did; with a reason, in a region."""
        self.sites[*place, what] += 1
        for metric, amount in ((what, 1), (f"{what}_bytes", nbytes)):
            if amount:
                self.totals[metric] += amount
            if amount and reason:
                self.allowed[reason, *place, metric] += amount


def count(trace: ProfilerTrace, places: Sequence[Place]) -> TraceCounts:
    """Count what a trace shows between its marks for the beginning and the end.

    Raises:
        IncompleteTraceError: A mark is missing, or a call left no record of what it made the device do.
    """
    window = _Window(trace, places)
    window.check("copies", COPIES, window.copies)
    window.check("kernel launches", LAUNCHES, window.kernels)
    counted = TraceCounts()
    for kernel in chain.from_iterable(window.kernels.values()):
        counted.totals[
            "aten_launches" if is_of_aten(kernel) else "library_launches"
        ] += 1
    # Each call of CUDA is a wait, may block, or neither.
    for call in window.calls:
        where = window.place_of(call), window.reason_of(call)
        if what := WAITS.get(call.name):
            counted.add(what, *where)
        # The host may block in a copy of pageable memory that no wait of the same operation follows.
        is_pageable = any(
            PAGEABLE in copy.name for copy in window.copies.get(call.correlation, ())
        )
        may_block = is_pageable and (
            "Async" not in call.name or not window.waits_after(call)
        )
        if call.name in MAY_BLOCK or may_block:
            counted.add("implicit_syncs", *where)
    for number, made in window.copies.items():
        maker = trace.calls.get(number)
        kind, size = kind_and_bytes(made, maker.name if maker else "")
        if kind != WITHIN_HOST:
            where = (
                (window.place_of(maker), window.reason_of(maker))
                if maker
                else (UNKNOWN, "")
            )
            counted.add(kind, *where, size)
    for time, address in trace.allocations:
        counted.allocations.append((address, window.line_at(time) or NOWHERE))
    return counted


def kind_and_bytes(made: Sequence[DeviceCopy], maker: str) -> tuple[str, int]:
    """The kind and the size of the copies that devices made for one call of that name.

    Raises:
        IncompleteTraceError: A copy has no direction.
    """
    nbytes: Counter[str] = Counter()
    for copy in made:
        code = copy.name.split()[1]
        if code not in DIRECTIONS:
            raise IncompleteTraceError(
                f"the profiler does not report the direction of {copy.name!r}"
            )
        nbytes[DIRECTIONS[code]] += copy.nbytes
    # A call may be carried out as several copies: it is one of the kind with most bytes.
    kind = max(nbytes, key=lambda direction: nbytes[direction])
    return ("p2p" if PEER in maker else kind), nbytes[kind]


class _Window:
    """The part of a trace that is measured.

    Attributes:
        calls: The calls within it, in the order of their start.
        kernels: Names of the kernels that they launched, by correlation.
        copies: What they copied, by correlation.
    """

    def __init__(self, trace: ProfilerTrace, places: Sequence[Place]) -> None:
        calls = sorted(trace.calls.values(), key=lambda call: call.start)
        begin, end = (_bound(trace.marks, calls, text) for text in (BEGIN, END))
        self.calls = [call for call in calls if begin.end <= call.start < end.start]
        outside = trace.calls.keys() - {call.correlation for call in self.calls}
        self.kernels = {
            number: made
            for number, made in trace.kernels.items()
            if number not in outside
        }
        self.copies = {
            number: made
            for number, made in trace.copies.items()
            if number not in outside
        }
        self._operations = trace.operations
        marked = [
            (mark, places[int(mark.text.rpartition(" ")[2])])
            for mark in trace.marks
            if " " in mark.text
        ]
        self._lines = [
            (mark.start, place) for mark, place in marked if mark.text.startswith(LINE)
        ]
        self._regions = [
            (mark.start, place[0])
            for mark, place in marked
            if mark.text.startswith(REGION)
        ]
        by_op: dict[int, list[CudaCall]] = {}
        for call in self.calls:
            by_op.setdefault(call.op, []).append(call)
        self._next = {
            one: following
            for of_op in by_op.values()
            for one, following in pairwise(of_op)
        }

    def check(
        self, what: str, names: tuple[str, ...], recorded: Container[int]
    ) -> None:
        """Every call of these names must have left a record of what it made the device do.

        Raises:
            IncompleteTraceError: One has not.
        """
        made = [call for call in self.calls if call.name.startswith(names)]
        lost = sum(1 for call in made if call.correlation not in recorded)
        if lost:
            raise IncompleteTraceError(
                f"the profiler has no record of {lost} of {len(made)} {what}"
            )

    def waits_after(self, call: CudaCall) -> bool:
        """Whether it is a copy, and the next call of the same operation waits for it."""
        following = self._next.get(call) if call.name.startswith(COPIES) else None
        return following is not None and WAITS.get(following.name) == "stream_syncs"

    def place_of(self, call: CudaCall) -> Place:
        """Return the line that was running as a call was made; the operation, where none was followed."""
        return self.line_at(call.start) or (
            LIBRARY,
            0,
            self._operations.get(call.op, LIBRARY),
        )

    def line_at(self, time: float) -> Place | None:
        """Return the line of the measuring thread at a time: others work for it, as autograd's do."""
        at = bisect_right(self._lines, time, key=lambda line: line[0])
        return self._lines[at - 1][1] if at else None

    def reason_of(self, call: CudaCall) -> str:
        """The reason of the region in which a call was made; empty outside of all."""
        at = bisect_right(self._regions, call.start, key=lambda region: region[0])
        return self._regions[at - 1][1] if at else ""


def _bound(
    marks: Sequence[TraceMark], calls: Sequence[CudaCall], text: str
) -> CudaCall:
    """The wait for the device inside a mark, which bounds the measured part on the clock of the calls."""
    for mark in marks:
        for call in calls:
            inside = call.start < mark.end and call.end > mark.start
            if mark.text == text and inside and call.name == "cudaDeviceSynchronize":
                return call
    raise IncompleteTraceError(
        f"the profiler has no record of the {text} of the measured block"
    )
