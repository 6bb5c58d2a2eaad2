"""Read traces of PyTorch's profiler: what the CUDA runtime did within every operation of ATen.

Ops and calls of the runtime nest on their thread; the device's work belongs to the call of its correlation.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Any

from simcuda.real.trace import (
    COPIES,
    LAUNCHES,
    LIBRARY,
    MAY_BLOCK,
    PAGEABLE,
    RUNTIME,
    WAITS,
    WITHIN_HOST,
    CudaCall,
    CudaRecords,
    IncompleteTraceError,
    kind_and_bytes,
    thread_of,
)
from simcuda.traces.arguments import may_not_block
from simcuda.traces.call import (
    DTYPES,
    Argument,
    RecordedCall,
    RecordedCopy,
    RecordedCost,
    RecordedSite,
    RecordedTensor,
    Trace,
)
from simcuda.traces.events import EventFile, NotATraceError

ATEN = "aten::"
OLD_CATEGORIES = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}
"""The names of categories in traces of 2021, and those of today."""
METRICS = WAITS | dict.fromkeys(MAY_BLOCK, "implicit_syncs")
MEMSETS = "cudaMemset"
CAPTURE = {"cudaStreamBeginCapture": True, "cudaStreamEndCapture": False}
"""Calls after which the thread's launches do not run, or run again: they are recorded into a graph."""
ARGUMENTS = {"Input Dims", "Input type", "Input Strides", "Concrete Inputs"}
"""What an op has of its arguments where they were recorded in full."""
SCALAR_READ = "aten::_local_scalar_dense"
"""The op behind ``item()``; it waits for its copy, always (CUDAScalar.cu)."""
CUDA_MEMORY = 1
"""The ``Device Type`` of CUDA in memory events (c10/core/DeviceType.h)."""
PROFILER = "torch/profiler/"
"""Code that waits for the device when a recording begins and ends."""
FRAME = re.compile(r"(.+)\((\d+)\): (.+)")

Place = tuple[str, int, str]


def read(path: Path) -> Trace:
    """The calls of ATen in a trace, as JSON or gzip.

    Raises:
        NotATraceError: It is no trace of PyTorch on CUDA, or cut. Nothing is said about the part before a
            cut: the device's work is written after the ops, so that their costs would be too low.
        IncompleteTraceError: The profiler lost events; the text has the sum that does not add up.
        OSError: The file cannot be opened.
    """
    file = EventFile(path)
    gathered = _Gathered()
    try:
        for event in file:
            gathered.add_event(event)
        kinds = (
            ", ".join(name for name, _ in gathered.categories.most_common(4)) or "none"
        )
        if any(call.name.startswith("hip") for call in gathered.calls.values()):
            raise NotATraceError(
                "recorded on an AMD GPU, by HIP: the simulation is of CUDA"
            )
        if not gathered.categories["cpu_op"]:
            raise NotATraceError(
                f"no operation of PyTorch among {file.read} events; categories: {kinds}"
            )
        if not gathered.calls:
            raise NotATraceError(
                "no call of CUDA: the profiler recorded the host alone; give it ProfilerActivity.CUDA"
            )
        for call in gathered.calls.values():
            gathered.items[call.thread].append(
                (call.start, _CALL, call.correlation, call)
            )
        costs = _Attribution(gathered)
        for thread in sorted(gathered.items):
            costs.follow(gathered.items.pop(thread))
    except NotATraceError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        kind = type(error).__name__
        raise NotATraceError(
            f"event {file.read} is none of a profiler: {kind}: {error}"
        ) from None
    sums = costs.sums()
    told = file.metadata.get("deviceProperties")
    told = told if isinstance(told, list) else []
    devices = [str(each.get("name", "")) for each in told if isinstance(each, dict)]
    version = file.metadata.get("cuda_runtime_version")
    return Trace(
        path=str(path),
        devices=tuple(dict.fromkeys(devices)),
        cuda=f"{version // 1000}.{version % 1000 // 10}"
        if isinstance(version, int)
        else "",
        has_memory=gathered.has_memory,
        has_stacks=gathered.has_stacks,
        has_lines=gathered.has_lines,
        calls=tuple(costs.calls),
        outside=dict(sorted(costs.outside.items())),
        sites=costs.recorded_sites(),
        left_out=tuple(costs.left_out()),
        sums=sums,
    )


@dataclass(slots=True)
class _Op:
    """An event of the host around others; ``call`` is the outermost op of ATen that it is or is in."""

    start: float
    end: float
    name: str
    number: int
    arguments: tuple[Argument, ...] | None
    stack: str
    call: RecordedCall | None = None


# What happens on a thread at the same time comes in this order: what encloses before what is enclosed.
_PYTHON, _OP, _CALL, _MEMORY = range(4)
_Item = tuple[float, int, float, Any]


@dataclass(eq=False)
class _Gathered(CudaRecords):
    """The events of a trace by kind, without those that carry no cost."""

    items: dict[str, list[_Item]] = field(default_factory=lambda: defaultdict(list))
    categories: Counter[str] = field(default_factory=Counter)
    has_memory: bool = False
    has_stacks: bool = False
    has_lines: bool = False
    without_end: int = 0
    _of_runtime: set[int] = field(default_factory=set)
    _known: dict[Any, Any] = field(default_factory=dict)

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Keep what an event says; raises what a missing or wrong field does."""
        arguments = event.get("args") or {}
        if event.get("name") == "[memory]" and arguments["Device Type"] == CUDA_MEMORY:
            self.has_memory = True
            if (nbytes := int(arguments["Bytes"])) > 0:
                self.items[thread_of(event)].append((event["ts"], _MEMORY, 0, nbytes))
        if event.get("ph") != "X":
            return
        category = str(event.get("cat"))
        category = OLD_CATEGORIES.get(category, category)
        self.categories[category] += 1
        if category == "cpu_op":
            self._add_op(event, arguments)
        elif category == "python_function":
            self.has_stacks = True
            place = _place(str(event["name"]))
            is_wanted = place and (_is_user_code(place[0]) or PROFILER in place[0])
            if is_wanted and (end := self._end_of(event)) is not None:
                self.items[thread_of(event)].append(
                    (event["ts"], _PYTHON, -end, (end, place))
                )
        else:
            number = int(arguments.get("correlation", 0))
            if category == RUNTIME and number in self._of_runtime:
                raise NotATraceError(
                    f"two calls of CUDA have the number {number}: several traces in one file, or one twice; "
                    "give one file for each rank"
                )
            if category == RUNTIME:
                self._of_runtime.add(number)
            self.add(event, category)

    def _add_op(self, event: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        name, number, given = (
            sys.intern(str(event["name"])),
            int(arguments.get("External id", 0)),
            None,
        )
        if name.startswith(ATEN) and arguments.keys() >= ARGUMENTS:
            given = tuple(_arguments(arguments))
            given = self._known.setdefault(given, given)
        stack = sys.intern(str(arguments.get("Call stack") or ""))
        if stack:
            self.has_stacks = self.has_lines = True
        if (end := self._end_of(event)) is not None:
            op = _Op(event["ts"], end, name, number, given, stack)
            # The profiler numbers ops as they start: on a coarse clock only that orders them.
            self.items[thread_of(event)].append((op.start, _OP, number, op))

    def _end_of(self, event: Mapping[str, Any]) -> float | None:
        """When an event ends; None if that is before it begins."""
        start = event["ts"]
        end: float = start + event.get("dur", 0)
        if start <= end < inf:
            return end
        self.without_end += 1
        return None


def _arguments(told: Mapping[str, Any]) -> Iterator[Argument]:
    columns = (
        told["Input Dims"],
        told["Input type"],
        told["Input Strides"],
        told["Concrete Inputs"],
    )
    for shape, kind, stride, text in zip_longest(*columns, fillvalue=""):
        if shape and isinstance(shape[0], list):
            # Of an empty list within a list nothing tells the kind; in a list of tensors it is one without
            # dimensions.
            pairs = zip(shape, stride, strict=True)
            yield tuple(
                RecordedTensor(tuple(each), "", tuple(steps)) for each, steps in pairs
            )
        elif shape or kind in DTYPES or str(kind).startswith("c10::"):
            yield RecordedTensor((*shape,), str(kind), (*stride,))
        else:
            yield str(text) or None


@dataclass(eq=False)
class _Around:
    """The ops and frames around one moment on a thread."""

    has_memory: bool
    python: list[tuple[float, Place]] = field(default_factory=list)
    ops: list[_Op] = field(default_factory=list)
    _numbered: dict[int, _Op] = field(default_factory=dict)
    _outermost: list[_Op] = field(default_factory=list)

    def leave(self, now: float) -> None:
        """Leave what ended before."""
        while self.python and self.python[-1][0] < now:
            self.python.pop()
        while self.ops and self.ops[-1].end < now:
            self.ops.pop()

    def enter(self, op: _Op) -> RecordedCall | None:
        """Enter an op; returns its call if it is outermost in ATen."""
        while self.ops and self.ops[-1].end < op.end:
            self.ops.pop()
        op.call = self.ops[-1].call if self.ops else None
        made = None
        if op.call:
            op.call.inner.append(op.name)
        elif op.name.startswith(ATEN):
            cost = RecordedCost(allocations=[] if self.has_memory else None)
            op.call = made = RecordedCall(
                op.name, op.arguments, cost, parent=_name_around(self.ops)
            )
            self._outermost = [*self._outermost[-1:], op]
        self.ops.append(op)
        self._numbered[op.number] = op
        return made

    def op_of(self, call: CudaCall) -> _Op | None:
        """The op whose number the call has; in traces of 2022 to 2024 it is a number of another kind."""
        op = self._numbered.get(call.op)
        return op if op and op.start <= call.start <= op.end else None

    def doubtful(self, now: float) -> list[_Op]:
        """Return two outermost ops if one ends in the microsecond in which the other begins."""
        if (
            len(self._outermost) == 2
            and self._outermost[0].end == self._outermost[1].start == now
        ):
            return self._outermost
        return []

    def place(self, within: _Op | None) -> Place:
        """The innermost line or function of user code."""
        for op in reversed(self.ops):
            for text in op.stack.split(";") if op.stack else ():
                if (place := _place(text)) and _is_user_code(place[0]):
                    return place
        if self.python:
            return self.python[-1][1]
        call = within.call if within else None
        return LIBRARY, 0, (call.parent or call.op) if call else LIBRARY


@dataclass(eq=False)
class _Attribution:
    """Finds the op, the event around it and the place in Python of everything that the runtime did."""

    _gathered: _Gathered
    calls: list[RecordedCall] = field(default_factory=list)
    outside: dict[str, RecordedCost] = field(
        default_factory=lambda: defaultdict(RecordedCost)
    )
    # How often, how long and how many bytes, by place and metric.
    _sites: dict[tuple[str, int, str, str], list[float]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0.0, 0])
    )
    _captured: set[int] = field(default_factory=set)
    _unclear_calls: int = 0
    _own: int = 0

    def follow(self, items: list[_Item]) -> None:
        """Go through what happened on a thread."""
        items.sort(key=lambda item: item[:3])
        around = _Around(self._gathered.has_memory)
        is_capturing = False
        for start, kind, _, what in items:
            around.leave(start)
            if kind == _PYTHON:
                around.python.append(what)
                continue
            if kind == _OP:
                if call := around.enter(what):
                    self.calls.append(call)
                continue
            if kind == _CALL:
                is_capturing = CAPTURE.get(what.name, is_capturing)
                if is_capturing:
                    self._captured.add(what.correlation)
                    continue
            within = around.op_of(what) if kind == _CALL else None
            if within is None:
                within = around.ops[-1] if around.ops else None
                if doubtful := around.doubtful(start):
                    self._unclear_calls += kind == _CALL and what.end == start
                    for op in doubtful:
                        if op.call and kind == _MEMORY:
                            op.call.cost.allocations = None
            cost = (
                within.call.cost
                if within and within.call
                else self.outside[_name_around(around.ops)]
            )
            for done, times, waited, nbytes in self._add(cost, what):
                if self._gathered.has_stacks:
                    place = around.place(within)
                    self._own += PROFILER in place[0]
                    seen = self._sites[(*place, done)]
                    seen[0] += times
                    seen[1] += waited
                    seen[2] += nbytes

    def _add(
        self, cost: RecordedCost, what: CudaCall | int
    ) -> Iterator[tuple[str, int, float, int]]:
        """Add a call or an allocation; yields each metric with times, how long the host waited, and bytes."""
        if isinstance(what, int):
            if cost.allocations is not None:
                cost.allocations.append(what)
            yield "allocations", 1, 0.0, what
            return
        number = what.correlation
        if kernels := self._gathered.kernels.get(number):
            cost.kernels += kernels
            yield "launches", len(kernels), 0.0, 0
        if copies := self._gathered.copies.get(number):
            kind, nbytes = kind_and_bytes(copies, what.name)
            if kind != WITHIN_HOST:
                cost.copies.append(
                    RecordedCopy(
                        kind, nbytes, any(PAGEABLE in each.name for each in copies)
                    )
                )
                yield kind, 1, 0.0, nbytes
        is_memset = what.name.startswith(MEMSETS)
        metric = "memsets" if is_memset else METRICS.get(what.name)
        if metric:
            setattr(cost, metric, getattr(cost, metric) + 1)
            waited = what.end - what.start if what.name in WAITS else 0.0
            cost.waited += waited
            yield metric, 1, waited, 0

    def recorded_sites(self) -> tuple[RecordedSite, ...]:
        """The places in Python code, the longest wait first."""
        sites = [
            RecordedSite(*key, int(count), waited, int(nbytes))
            for key, (count, waited, nbytes) in self._sites.items()
            if PROFILER not in key[0]
        ]
        return tuple(sorted(sites, key=lambda site: (-site.waited, site)))

    def sums(self) -> tuple[str, ...]:
        """Return the sums that were compared, each with its two sides.

        Raises:
            IncompleteTraceError: Two sides differ that must not.
        """
        gathered, captured = self._gathered, self._captured
        calls = {
            number: call
            for number, call in gathered.calls.items()
            if number not in captured
        }
        # Numbers rise: the device's work of lower ones was launched before the recording began.
        first = min(gathered.calls)
        # A graph has kernels, copies and memsets of one launch.
        records = {*gathered.kernels, *gathered.copies, *gathered.memsets}
        done = {number for number in records if number >= first}
        launches = {
            number for number, call in calls.items() if call.name.startswith(LAUNCHES)
        }
        copies = {
            number for number, call in calls.items() if call.name.startswith(COPIES)
        }
        reads = []
        pageable = []
        are_known = []
        for call in self.calls:
            has_waited = any(call.cost.waits)
            if SCALAR_READ in (call.op, *call.inner) and any(
                copy.kind == "d2h" for copy in call.cost.copies
            ):
                reads.append(has_waited)
            if any(copy.pageable for copy in call.cost.copies) and not may_not_block(
                call.op, call.arguments
            ):
                pageable.append(has_waited)
                are_known.append(call.arguments is not None)
        sums = (
            (
                "launches",
                len(launches),
                "with their kernel",
                len(launches & gathered.kernels.keys()),
            ),
            (
                "copies",
                len(copies),
                "with their record",
                len(copies & gathered.copies.keys()),
            ),
            (
                "records of the device",
                len(done),
                "with their call",
                len(gathered.calls.keys() & done),
            ),
            ("reads of scalars", len(reads), "with their wait", sum(reads)),
            ("pageable copies", len(pageable), "with a wait", sum(pageable)),
        )
        *exact, (name, all_, part, some) = sums
        wrong = [
            f"{name} {all_}, {part} {some}"
            for name, all_, part, some in exact
            if some < all_
        ]
        # A copy waits for its stream unless it is asked not to block, which only some traces show.
        waits_for_streams = any(
            WAITS.get(call.name) == "stream_syncs" for call in calls.values()
        )
        if pageable and not any(pageable) and (any(are_known) or not waits_for_streams):
            wrong.append(f"{name} {all_}, {part} {some}")
        if wrong:
            raise IncompleteTraceError(f"the profiler lost events: {'; '.join(wrong)}")
        return tuple(
            f"{name} {all_}, {part} {some}" for name, all_, part, some in sums if all_
        )

    def left_out(self) -> Iterator[str]:
        """Tell what was not attributed or is not certain, and why."""
        gathered = self._gathered
        first = min(gathered.calls)
        early = unknown = lost = 0
        for kind in (gathered.kernels, gathered.copies):
            early += sum(number < first for number in kind)
        for number, call in gathered.calls.items():
            unknown += "Synchronize" in call.name and call.name not in WAITS
            lost += call.name.startswith(MEMSETS) and number not in gathered.memsets
        unclear = sum(
            call.cost.allocations is None for call in self.calls if gathered.has_memory
        )
        for count, text in (
            (early, "kernels and copies were launched before the recording began"),
            (
                gathered.without_end,
                "events of the host end before they begin, and are left out",
            ),
            (
                unknown,
                "waits of another kind, such as cuCtxSynchronize, are not counted",
            ),
            (len(self._captured), "calls were recorded into a CUDA graph"),
            (lost, "memsets have no record of the device; the calls are counted"),
            (self._own, "waits are the profiler's own, and at no place"),
            (
                unclear,
                "ops have allocations of which the clock leaves open whose they are",
            ),
            (
                self._unclear_calls,
                "calls of the runtime fall between two ops; the later one has them",
            ),
        ):
            if count:
                yield f"{count} {text}"


@cache
def _place(text: str) -> Place | None:
    """File, line and function of a frame's text; None for built-in functions and modules."""
    match = FRAME.fullmatch(text)
    return (match[1], int(match[2]), match[3]) if match else None


@cache
def _is_user_code(file: str) -> bool:
    """Return True if a file is none of torch or of the standard library, as far as its name tells."""
    if file.startswith("<") or "/torch/" in f"/{file}":
        return False
    # The profiler cuts entries of sys.path off the front.
    is_standard = (
        file.split("/", maxsplit=1)[0].removesuffix(".py") in sys.stdlib_module_names
    )
    return not is_standard and not re.search(
        r"/lib/python3[^/]*/(?!site-packages|dist-packages)", file
    )


def _name_around(ops: list[_Op]) -> str:
    """Return the nearest event that is not an annotation; names of annotations have marks."""
    return next((op.name for op in reversed(ops) if "#" not in op.name), "")
