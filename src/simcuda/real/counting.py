"""From the profiler's trace to counts and to the lines of code behind them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from simcuda.real.marks import BEGIN, END, LINE, Place
from simcuda.real.trace import Call, Copy, Mark, Trace

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
DIRECTIONS = {
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
WITHIN_HOST = "HtoH"
PEER = "Peer"
PAGEABLE = "Pageable"
LIBRARY = "<library>"
"""Stands for the file where no line of Python is known; the function is then the ATen operation."""


class IncompleteTraceError(RuntimeError):
    """The profiler has lost something, so that what it saw must not be counted."""


@dataclass(frozen=True)
class Counted:
    """Totals by metric, and how often each place did what."""

    totals: Counter[str] = field(default_factory=Counter)
    sites: Counter[tuple[str, int, str, str]] = field(default_factory=Counter)


def count(trace: Trace, places: Sequence[Place]) -> Counted:
    """Count what a trace shows between its marks for the beginning and the end.

    Args:
        trace: What the profiler saw.
        places: What the numbers in marks stand for.

    Raises:
        IncompleteTraceError: A mark is missing, or a call left no record of what it made the device do.
    """
    window = _Window(trace, places)
    counted = Counted()
    for what, amount, place in (*window.waits(), *window.copies(), *window.implicit_waits()):
        counted.totals[what] += amount
        if not what.endswith("_bytes"):
            counted.sites[*place, what] += amount
    counted.totals["launches"] = window.launches()
    return counted


Count = tuple[str, int, Place]


class _Window:
    """The part of a trace that is measured."""

    def __init__(self, trace: Trace, places: Sequence[Place]) -> None:
        begin, end = _bound(trace, BEGIN), _bound(trace, END)
        self._calls = [call for call in trace.calls if begin.end <= call.start < end.start]
        outside = {call.correlation for call in trace.calls} - {call.correlation for call in self._calls}
        self._kernels = [kernel for kernel in trace.kernels if kernel not in outside]
        self._copies: dict[int, list[Copy]] = {}
        for copy in trace.copies:
            if copy.correlation not in outside:
                self._copies.setdefault(copy.correlation, []).append(copy)
        self._marks = trace.marks
        self._lines = [
            (mark.start, _place(mark, places)) for mark in self._marks if mark.text.startswith(LINE)
        ]
        self._operations = trace.operations
        self._waits = dict(self._announced(places))
        self._next = {one: next_ for of_op in self._by_op().values() for one, next_ in pairwise(of_op)}

    def waits(self) -> Iterator[Count]:
        """The explicit waits; those that no mark announced are of a library or the allocator."""
        for call in self._calls:
            if what := WAITS.get(_name(call)):
                yield what, 1, self._place_of(call)

    def copies(self) -> Iterator[Count]:
        """The copies and their bytes."""
        calls = {call.correlation: call for call in self._calls}
        self._check("copies", COPIES, set(self._copies))
        for correlation, made in self._copies.items():
            call = calls.get(correlation)
            nbytes: Counter[str] = Counter()
            for copy in made:
                nbytes[_direction(copy)] += copy.nbytes
            kind = max(nbytes, key=lambda direction: nbytes[direction])
            if call and PEER in call.name:
                nbytes, kind = Counter(p2p=nbytes[kind]), "p2p"
            if kind != WITHIN_HOST:
                place = self._place_of(call) if call else (LIBRARY, 0, LIBRARY)
                yield kind, 1, place
                yield f"{kind}_bytes", nbytes[kind], place

    def implicit_waits(self) -> Iterator[Count]:
        """Where the host may wait without a call for that."""
        for call in self._calls:
            if _name(call) in MAY_BLOCK or self._may_block(call):
                yield "implicit_syncs", 1, self._place_of(call)

    def launches(self) -> int:
        """The kernels that were launched, by ATen or by a library."""
        self._check("kernel launches", LAUNCHES, set(self._kernels))
        return len(self._kernels)

    def _may_block(self, call: Call) -> bool:
        """Whether it copies from or to pageable memory and no wait of the same operation follows."""
        made = self._copies.get(call.correlation, ())
        if not any(PAGEABLE in copy.name for copy in made):
            return False
        return "Async" not in call.name or not self._waits_after(call)

    def _waits_after(self, call: Call) -> bool:
        """Whether it is a copy, and the next call of the same operation waits for it."""
        following = self._next.get(call) if call.name.startswith(COPIES) else None
        return following is not None and WAITS.get(_name(following)) == "stream_syncs"

    def _check(self, what: str, names: tuple[str, ...], recorded: set[int]) -> None:
        made = [call for call in self._calls if call.name.startswith(names)]
        lost = sum(1 for call in made if call.correlation not in recorded)
        if lost:
            raise IncompleteTraceError(f"the profiler has no record of {lost} of {len(made)} {what}")

    def _announced(self, places: Sequence[Place]) -> Iterator[tuple[Call, Place]]:
        """Waits that PyTorch announced, each by a mark just before it."""
        for name, what in WAITS.items():
            calls = [call for call in self._calls if _name(call) == name]
            marks = [mark for mark in self._marks if mark.text.startswith(what)]
            for call in calls:
                if marks and marks[0].start <= call.start:
                    yield call, _place(marks.pop(0), places)
            if marks:
                raise IncompleteTraceError(
                    f"the profiler has no record of {len(marks)} of the calls of {name}"
                )

    def _by_op(self) -> dict[int, list[Call]]:
        by_op: dict[int, list[Call]] = {}
        for call in self._calls:
            by_op.setdefault(call.op, []).append(call)
        return by_op

    def _place_of(self, call: Call) -> Place:
        """The line that was announced for a wait, or for the wait that ends a copy; else the line at work."""
        if self._waits_after(call):
            call = self._next[call]
        if place := self._waits.get(call):
            return place
        at = bisect_right(self._lines, call.start, key=lambda line: line[0])
        return self._lines[at - 1][1] if at else (LIBRARY, 0, self._operations.get(call.op, LIBRARY))


def _bound(trace: Trace, text: str) -> Call:
    """The wait for the device that was made within a mark, to tell the measured part on the calls' clock."""
    for mark in trace.marks:
        for call in trace.calls:
            inside = call.start < mark.end and call.end > mark.start
            if mark.text == text and inside and _name(call) == "cudaDeviceSynchronize":
                return call
    raise IncompleteTraceError(f"the profiler has no record of the {text} of the measured block")


def _place(mark: Mark, places: Sequence[Place]) -> Place:
    return places[int(mark.text.rpartition(" ")[2])]


def _name(call: Call) -> str:
    """The name of a call, whichever way of default streams it was compiled for."""
    return call.name.removesuffix("_ptsz").removesuffix("_ptds")


def _direction(copy: Copy) -> str:
    code = copy.name.split()[1]
    if code == WITHIN_HOST:
        return WITHIN_HOST
    if code not in DIRECTIONS:
        raise IncompleteTraceError(f"the profiler does not tell the direction of {copy.name!r}")
    return DIRECTIONS[code]
