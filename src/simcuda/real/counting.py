"""From the profiler's trace to counts and to the lines of code behind them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from simcuda.real.marks import BEGIN, END, LINE, REGION, Place
from simcuda.real.trace import (
    CudaCall,
    DeviceCopy,
    IncompleteTraceError,
    ProfilerTrace,
    TraceMark,
    is_of_aten,
)

WAITS = {
    "cudaStreamSynchronize": "stream_syncs",
    "cudaEventSynchronize": "event_syncs",
    "cudaDeviceSynchronize": "device_syncs",
}
"""The metric of every call that makes the host wait."""

MAY_BLOCK = {"cudaMalloc", "cudaFree", "cudaMallocHost", "cudaHostAlloc", "cudaFreeHost", "cudaMallocManaged"}
"""Calls in which the host may wait, although waiting is not what they are for."""

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchCooperativeKernel")
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
    """Totals by metric, how often each place did what, and how much of it each region set apart."""

    totals: Counter[str] = field(default_factory=Counter)
    sites: Counter[tuple[str, int, str, str]] = field(default_factory=Counter)
    allowed: Counter[tuple[str, str, int, str, str]] = field(default_factory=Counter)

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

    Args:
        trace: What the profiler saw.
        places: What the numbers in marks stand for.

    Raises:
        IncompleteTraceError: A mark is missing, or a call left no record of what it made the device do.
    """
    window = _Window(trace, places)
    window.check("copies", COPIES, window.copies)
    window.check("kernel launches", LAUNCHES, window.kernels)
    counted = TraceCounts()
    for kernel in chain.from_iterable(window.kernels.values()):
        counted.totals["aten_launches" if is_of_aten(kernel) else "library_launches"] += 1
    # Each call of CUDA is a wait, may block, or neither.
    for call in window.calls:
        where = window.place_of(call), window.reason_of(call)
        # Waits that no mark announced are of a library or the allocator.
        if what := WAITS.get(call.name):
            counted.add(what, *where)
        # The host may block in a copy of pageable memory that no wait of the same operation follows.
        is_pageable = any(PAGEABLE in copy.name for copy in window.copies.get(call.correlation, ()))
        may_block = is_pageable and ("Async" not in call.name or not window.waits_after(call))
        if call.name in MAY_BLOCK or may_block:
            counted.add("implicit_syncs", *where)
    for number, made in window.copies.items():
        maker = trace.calls.get(number)
        kind, size = kind_and_bytes(made, maker.name if maker else "")
        if kind != WITHIN_HOST:
            where = (window.place_of(maker), window.reason_of(maker)) if maker else (UNKNOWN, "")
            counted.add(kind, *where, size)
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
            raise IncompleteTraceError(f"the profiler does not report the direction of {copy.name!r}")
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
        self.kernels = {number: made for number, made in trace.kernels.items() if number not in outside}
        self.copies = {number: made for number, made in trace.copies.items() if number not in outside}
        self._operations = trace.operations
        marked = [
            (mark, places[int(mark.text.rpartition(" ")[2])]) for mark in trace.marks if " " in mark.text
        ]
        self._lines = [(mark.start, place) for mark, place in marked if mark.text.startswith(LINE)]
        self._regions = [(mark.start, place[0]) for mark, place in marked if mark.text.startswith(REGION)]
        # PyTorch announces its waits, each by a mark just before it.
        self._announced: dict[CudaCall, Place] = {}
        for name, what in WAITS.items():
            waits = [(mark.start, place) for mark, place in marked if mark.text.startswith(what)]
            for call in self.calls:
                if call.name == name and waits and waits[0][0] <= call.start:
                    self._announced[call] = waits.pop(0)[1]
            if waits:
                raise IncompleteTraceError(
                    f"the profiler has no record of {len(waits)} of the calls of {name}"
                )
        by_op: dict[int, list[CudaCall]] = {}
        for call in self.calls:
            by_op.setdefault(call.op, []).append(call)
        self._next = {one: following for of_op in by_op.values() for one, following in pairwise(of_op)}

    def check(self, what: str, names: tuple[str, ...], recorded: Container[int]) -> None:
        """Every call of these names must have left a record of what it made the device do.

        Raises:
            IncompleteTraceError: One has not.
        """
        made = [call for call in self.calls if call.name.startswith(names)]
        lost = sum(1 for call in made if call.correlation not in recorded)
        if lost:
            raise IncompleteTraceError(f"the profiler has no record of {lost} of {len(made)} {what}")

    def waits_after(self, call: CudaCall) -> bool:
        """Whether it is a copy, and the next call of the same operation waits for it."""
        following = self._next.get(call) if call.name.startswith(COPIES) else None
        return following is not None and WAITS.get(following.name) == "stream_syncs"

    def place_of(self, call: CudaCall) -> Place:
        """The line that was announced for a wait, or for the wait that ends a copy; else the running line."""
        if self.waits_after(call):
            call = self._next[call]
        if place := self._announced.get(call):
            return place
        at = bisect_right(self._lines, call.start, key=lambda line: line[0])
        return self._lines[at - 1][1] if at else (LIBRARY, 0, self._operations.get(call.op, LIBRARY))

    def reason_of(self, call: CudaCall) -> str:
        """The reason of the region in which a call was made; empty outside of all."""
        at = bisect_right(self._regions, call.start, key=lambda region: region[0])
        return self._regions[at - 1][1] if at else ""


def _bound(marks: Sequence[TraceMark], calls: Sequence[CudaCall], text: str) -> CudaCall:
    """The wait for the device inside a mark, which bounds the measured part on the clock of the calls."""
    for mark in marks:
        for call in calls:
            inside = call.start < mark.end and call.end > mark.start
            if mark.text == text and inside and call.name == "cudaDeviceSynchronize":
                return call
    raise IncompleteTraceError(f"the profiler has no record of the {text} of the measured block")
