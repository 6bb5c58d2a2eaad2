"""Follow the calls of a program that runs as it is.

Count what happens inside the calls of one function; find out who called the lines that cost something.
"""

from __future__ import annotations

import ast
import gc
import inspect
import linecache
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, cast

import simcuda
from finding_tickets.claims.laws import Place, join_ranges
from finding_tickets.claims.metrics import DEPENDS_ON_CACHE, SYNCS
from finding_tickets.ground.statements import read_statements
from finding_tickets.measure.meter import Function, Meter, VariantRun
from finding_tickets.measure.tasks import (
    TOOL,
    CannotMeasureError,
    WrongTargetError,
    belongs_to,
    portable,
)
from finding_tickets.measure.workloads import Point, Workload
from simcuda.ledger import is_user_code
from simcuda.measurement import HEAVIEST_FIRST, Measurement

RUNS_IN_PIECES = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)
LOCAL = ".<locals>"
# But for what is between an operation and whoever calls it.
_OF_TORCH = re.compile(r"/(torch/(?:[a-z]\w*/)*[a-z]\w*\.py)$")
_DEFINITION = re.compile(r"(?:async )?def (\w+)")
# Other comprehensions have frames of their own, which tell them from the rest of their line.
INLINED = (
    (ast.ListComp, ast.SetComp, ast.DictComp) if sys.version_info >= (3, 12) else ()
)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *INLINED)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

# File, by its absolute path, line and function.
Line = tuple[str, int, str]


@dataclass(frozen=True)
class CallsRun(VariantRun):
    """The cost of each call of a function in a run, but for the first ``apart``; no ``retained_bytes``.

    ``metrics`` and ``sites`` hold the most that any of the ``calls`` cost, and ``each`` has every call; calls
    of equal cost may be the same object. If the calls differ, ``least`` holds the least of all that differs,
    and ``differs`` says in words which call does so first, by which metric and at which line.
    """

    calls: int = 0
    each: tuple[VariantRun, ...] = ()
    apart: int = 0
    least: Mapping[str | Place, int] = field(default_factory=dict)
    differs: str = ""


class CallMeter(Meter):
    """Counts by another meter, inside the calls of ``function`` alone: ``path.py:Name`` or ``module:Name``.

    A call counts from its entry to its return, with what other threads do at that time; a call inside another
    one belongs to it. The first ``after`` calls are set apart; by default the first one, if there are more.

    Raises:
        WrongTargetError: The file has no such function.
    """

    def __init__(
        self, meter: Meter, function: str, root: Path, after: int | None = None
    ) -> None:
        self.name, self.device = meter.name, meter.device
        self._meter, self._function, self._root, self._after = (
            meter,
            function,
            root,
            after,
        )
        self._module, _, self._qualified = function.rpartition(":")
        self._is_file = self._module.endswith(".py")
        self._wanted: dict[int, tuple[CodeType, bool]] = {}
        self._runs: list[VariantRun] = []
        self._failure = ""
        if self._is_file and self._qualified not in (
            there := _functions(root, self._module)
        ):
            named = [name for name in there if name.endswith(f".{self._qualified}")]
            close = ", ".join(named or get_close_matches(self._qualified, there, n=1))
            hint = f" (did you mean {close}?)" if close else ""
            raise WrongTargetError(
                f"{self._module}: has no function {self._qualified}{hint}"
            )

    def cannot_run(self, workload: Workload, point: Point) -> str | None:
        """Return why the other meter cannot run a point; None if it can."""
        return self._meter.cannot_run(workload, point)

    @contextmanager
    def devices(
        self, number: int, capacity: int | None = None
    ) -> Iterator[simcuda.Gpu]:
        """The devices of the other meter; what is measured on them is what happens inside calls."""
        with self._meter.devices(number, capacity) as gpu:
            measuring = {
                "measure": lambda: self.following(gpu),
                "live_bytes": gpu.live_bytes,
            }
            yield cast("simcuda.Gpu", SimpleNamespace(profile=gpu.profile, **measuring))

    def measure(
        self, workload: Workload, point: Point, function: Function, root: Path
    ) -> CallsRun:
        """Warm up, run ``function`` once and return what the calls in it cost."""
        return self.per_call(super().measure(workload, point, function, root))

    def per_call(self, whole: VariantRun) -> CallsRun:
        """Return the cost of the calls since the last time, made in the run ``whole``.

        Raises:
            CannotMeasureError: No call counts: there is none after those set apart, or calls overlap.
        """
        runs, failure = self._runs, self._failure
        self._runs, self._failure = [], ""
        if not runs and not failure:
            failure = f"{self._function} is never called{self._why_never()}"
        after = self._after if self._after is not None else min(1, len(runs) - 1)
        if not failure and len(runs) <= after:
            failure = f"{self._function} is called {len(runs)}x, and the first {after} calls are set apart"
        if failure:
            raise CannotMeasureError(
                f"{failure}; {whole.error}" if whole.error else failure
            )
        return _per_call(runs[after:], after, whole)

    def _why_never(self) -> str:
        """Explain why a function was never called, as far as that is known."""
        if self._is_file:
            return ""
        found: Any = sys.modules.get(self._module)
        if found is None:
            return f": {self._module} is not imported"
        for name in self._qualified.split("."):
            found = getattr(found, name, None)
        code = (
            getattr(inspect.unwrap(found), "__code__", None)
            if callable(found)
            else None
        )
        if code is None:
            return f": {self._module} has no such function"
        place = f"{portable(code.co_filename, self._root)}:{code.co_qualname.replace(LOCAL, '')}"
        return f": it is {place}" if not place.endswith(f":{self._qualified}") else ""

    def is_wanted(self, frame: FrameType) -> bool:
        """Return True if a frame runs the function."""
        code = frame.f_code
        if id(code) not in self._wanted:
            spec = frame.f_globals.get("__spec__")
            is_there = self._module in (
                frame.f_globals.get("__name__"),
                getattr(spec, "name", None),
            )
            if self._is_file:
                is_there = (
                    Path(code.co_filename).resolve()
                    == (self._root / self._module).resolve()
                )
            is_it = is_there and code.co_qualname.replace(LOCAL, "") == self._qualified
            # The code is kept: no other one can have its address.
            self._wanted[id(code)] = code, is_it
        return self._wanted[id(code)][1]

    @contextmanager
    def following(self, gpu: simcuda.Gpu) -> Iterator[Measurement]:
        """Count every call in the block, in this thread and in those that it starts; gives nothing."""
        last = self._qualified.rpartition(".")[2]
        inside: list[int] = []
        block: AbstractContextManager[Measurement]
        counted, collects = Measurement(), gc.isenabled()

        def follow(frame: FrameType, event: str, value: object) -> Any:
            nonlocal block, counted
            # Python asks this about every call of any function.
            if frame.f_code.co_name != last or not self.is_wanted(frame):
                # What follows the program to note its variables goes on.
                return previous(frame, event, value) if previous else None
            frame.f_trace_lines = False
            # What is raised here would end the code under test.
            try:
                if event == "call":
                    inside.append(threading.get_ident())
                    if frame.f_code.co_flags & RUNS_IN_PIECES:
                        self._fail(
                            "is a generator or a coroutine, which has no calls but parts; name what it calls"
                        )
                    if inside[-1] != inside[0]:
                        self._fail("runs in several threads at a time")
                    if len(inside) == 1:
                        # Peaks must not depend on when garbage is collected.
                        gc.disable()
                        block = gpu.measure()
                        counted = block.__enter__()
                elif event == "return" and inside:
                    inside.pop()
                    if not inside:
                        block.__exit__(None, None, None)
                        self._add(counted)
                        if collects:
                            gc.enable()
            except Exception as error:
                self._fail(f"cannot be counted: {error}")
            return follow

        # Real devices trace to find lines; profiling does not disturb that, and takes longer.
        is_real = self.name == "cuda"
        put: Any = sys.setprofile if is_real else sys.settrace
        put_in_threads: Any = threading.setprofile if is_real else threading.settrace
        previous: Any = sys.getprofile() if is_real else sys.gettrace()
        put_in_threads(follow)
        put(follow)
        try:
            yield Measurement()
        finally:
            put(previous)
            put_in_threads(None)
            if inside:
                self._fail("has not returned in a thread that still runs")
                with suppress(Exception):
                    block.__exit__(None, None, None)
            if collects:
                gc.enable()

    def _fail(self, why: str) -> None:
        self._failure = self._failure or f"{self._function} {why}"

    def _add(self, counted: Measurement) -> None:
        run = VariantRun.of(counted, 0, self._root, {}, None)
        # The frame and its caller still hold locals and the result: nothing tells what stays after them.
        metrics, ranges = dict(run.metrics), dict(run.ranges)
        metrics.pop("retained_bytes")
        ranges.pop("retained_bytes", None)
        run = replace(run, metrics=metrics, ranges=ranges)
        # Of thousands of equal calls one is kept.
        same = self._runs and self._runs[-1] == run
        self._runs.append(self._runs[-1] if same else run)


def _per_call(runs: Sequence[VariantRun], apart: int, whole: VariantRun) -> CallsRun:
    """Return one run for all calls; equal calls may be one object."""
    different = list({id(run): run for run in runs}.values())
    costs: list[dict[Any, int]] = [{**run.metrics, **run.sites} for run in different]
    most = {
        key: max(each.get(key, 0) for each in costs)
        for key in dict.fromkeys(chain(*costs))
    }
    least = {key: min(each.get(key, 0) for each in costs) for key in most}
    differs = ""
    steady = [
        key
        for key in most
        if (key if isinstance(key, str) else key[3]) != DEPENDS_ON_CACHE
    ]
    for run, cost in zip(different[1:], costs[1:], strict=True):
        changed = [key for key in steady if cost.get(key, 0) != costs[0].get(key, 0)]
        if changed:
            # The first metric, and the heaviest line.
            metrics = [key for key in changed if isinstance(key, str)]
            places = [key for key in changed if not isinstance(key, str)]
            places.sort(key=lambda place: HEAVIEST_FIRST.index(place[3]))
            texts = []
            named: list[str | Place] = [*metrics[:1], *places[:1]]
            for key in named:
                name = key if isinstance(key, str) else f"{key[3]} at {key[0]}:{key[1]}"
                texts.append(f"{name} {costs[0].get(key, 0)}, then {cost.get(key, 0)}")
            number = (
                apart
                + 1
                + next(place for place, each in enumerate(runs) if each is run)
            )
            differs = f"call {number} costs something else than call {apart + 1}: {'; '.join(texts)}"
            break
    return CallsRun(
        at=whole.at,
        metrics={key: n for key, n in most.items() if isinstance(key, str)}
        | {"raised": whole.metrics["raised"]},
        sites={key: count for key, count in most.items() if not isinstance(key, str)},
        error=whole.error,
        unknown=tuple({name for run in different for name in run.unknown}),
        approximate=tuple({name for run in different for name in run.approximate}),
        ranges=join_ranges(different, lambda _, each: max(each)),
        operations=runs[-1].operations,
        # Calls may take a region or not: what each of them sets apart is sure.
        allowed={
            key: min(run.allowed.get(key, 0) for run in different)
            for key in different[0].allowed
        },
        result=whole.result,
        calls=len(runs),
        each=tuple(runs),
        apart=apart,
        least={key: count for key, count in least.items() if count != most[key]},
        differs=differs,
    )


def _functions(root: Path, file: str) -> list[str]:
    """Return the qualified names of all functions in a file; none where it cannot be read."""
    names = []
    for statement in read_statements(root, file):
        if head := _DEFINITION.match(statement.code):
            names.append(f"{statement.function}.{head[1]}".lstrip("."))
    return names


class Callers:
    """The callers of the lines that cost something, by line.

    Attributes:
        nearest: How often each line of the repository's own code was the nearest one that led there.
        repeated: The lines to which a loop, or a thread, led: they may have run more than once.
        hidden: The function of torch, and its file, in which a line waits, if it does in one.
        waits: How often each line waited in each step of the optimizer, by the number of the step.
    """

    def __init__(self, root: Path) -> None:
        self.nearest: dict[Line, Counter[Line]] = defaultdict(Counter)
        self.repeated: set[Line] = set()
        self.hidden: dict[Line, str] = {}
        self.waits: dict[Line, Counter[int]] = defaultdict(Counter)
        self._steps, self._optimizer = 0, 0
        self._root = root
        self._owners: dict[int, tuple[CodeType, str]] = {}

    def note(self, frame: FrameType) -> None:
        """Take down how the line was reached that a frame is at."""
        here = _line_of(frame)
        inner: Any = sys._getframe(2)  # noqa: SLF001 - the ledger's, if it counts more than an allocation
        if inner.f_code.co_name == "count" and inner.f_locals["what"] in SYNCS:
            self.waits[here][self._steps] += inner.f_locals["amount"]
            while inner is not frame:
                code, inner = inner.f_code, inner.f_back
                place = _OF_TORCH.search(code.co_filename)
                if place and not code.co_name.startswith("<"):
                    self.hidden[here] = f"{code.co_name}, {place[1]}"
                    break
        nearest, is_repeated, outer = None, here in self.repeated, frame
        while (owner := self._owner(outer.f_code)) != "tool":
            if owner == "own":
                nearest = nearest or _line_of(outer)
            # Frames of torch and of the standard library have loops for reasons of their own.
            if owner and not is_repeated:
                name = outer.f_code.co_name
                in_loop = outer.f_lineno in looping_lines(outer.f_code.co_filename)
                is_repeated = in_loop or (name.startswith("<") and name != "<module>")
            if nearest and is_repeated:
                break
            if outer.f_back is None:
                # A thread: how often it was started is not known.
                is_repeated = True
                break
            outer = outer.f_back
        if is_repeated:
            self.repeated.add(here)
        if nearest:
            self.nearest[here][nearest] += 1

    def note_step(self, optimizer: object, *_: object) -> None:
        """Take down that an optimizer made a step; of several the first one tells the steps."""
        self._optimizer = self._optimizer or id(optimizer)
        self._steps += self._optimizer == id(optimizer)

    def waits_per_step(self, line: Line, total: int) -> int:
        """Return how often a line waits in each step; 0 if that differs, or is not all that it does."""
        counts = self.waits[line].values()
        is_all = len(counts) == self._steps and sum(counts) == total
        return max(counts) if is_all and len({*counts}) == 1 else 0

    def _owner(self, code: CodeType) -> str:
        if id(code) not in self._owners:
            file = Path(code.co_filename)
            owner = "installed" if is_user_code(code.co_filename) else ""
            owner = "own" if belongs_to(self._root, file) else owner
            self._owners[id(code)] = (
                code,
                "tool" if file.is_relative_to(TOOL[0]) else owner,
            )
        return self._owners[id(code)][1]


class CallChains:
    """By which calls of the repository's own code each line was reached.

    A chain is the expressions that were at work, the innermost first: moved lines leave it as it is.
    """

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        self._is_own = lru_cache(maxsize=None)(is_own)
        # The code is kept: no other one can have its address.
        self._codes: dict[int, CodeType] = {}
        self._noted: dict[Line, set[tuple[tuple[int, int], ...]]] = defaultdict(set)

    def note(self, frame: FrameType) -> None:
        """Take down how the line was reached that a frame is at."""
        chain = []
        for outer, _ in walk_stack(frame):
            code = outer.f_code
            if self._is_own(code.co_filename):
                self._codes[id(code)] = code
                chain.append((id(code), outer.f_lasti))
        self._noted[_line_of(frame)].add(tuple(chain))

    def texts(self, root: Path) -> list[tuple[str, int, str, str]]:
        """Return file, line and function of each line that was reached, with each chain."""
        found = set()
        for (file, line, function), chains in self._noted.items():
            for each in chains:
                text = "\n".join(
                    _expression(self._codes[code], at, root) for code, at in each
                )
                found.add((portable(file, root), line, function, text))
        return sorted(found)


@lru_cache(maxsize=4096)
def _expression(code: CodeType, at: int, root: Path) -> str:
    """Return file, function and code of the expression that an instruction is part of, on one line."""
    first, last, begin, end = list(code.co_positions())[at // 2]
    lines = [
        line.encode()
        for line in linecache.getlines(code.co_filename)[(first or 1) - 1 : last]
    ]
    if lines and begin is not None:
        # Cut the end first: begin and end may be on one line.
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
    text = b" ".join(lines).decode(errors="replace")
    return f"{portable(code.co_filename, root)}:{code.co_qualname}: {' '.join(text.split())}"


def _line_of(frame: FrameType) -> Line:
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


@lru_cache
def _parsed(file: str) -> ast.Module:
    """A module; an empty one where there is none to read."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


@lru_cache
def looping_lines(file: str) -> frozenset[int]:
    """Return the lines of a file that are in a loop of their function, including the head of the loop."""

    def lines(node: ast.AST, *, loops: bool) -> Iterator[int]:
        loops = not isinstance(node, SCOPES) and (loops or isinstance(node, LOOPS))
        # What has a body has expressions beside it.
        if (
            loops
            and isinstance(node, ast.stmt | ast.expr)
            and not hasattr(node, "body")
        ):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for child in ast.iter_child_nodes(node):
            yield from lines(child, loops=loops)

    return frozenset(lines(_parsed(file), loops=False))


@lru_cache
def loop_variables(file: str) -> frozenset[str]:
    """Return the names that nothing but loops of a file bind."""
    bound, in_loops = Counter[str](), Counter[str]()
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            in_loops.update(
                each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)
            )
    return frozenset(name for name, number in in_loops.items() if number == bound[name])


def statement_at(file: str, line: int) -> tuple[int, str]:
    """Return where the statement begins that a line is part of, and its code on one line.

    Of one with a block, it is the line alone.
    """
    for node in ast.walk(_parsed(file)):
        if (
            not isinstance(node, ast.stmt)
            or hasattr(node, "body")
            or node.lineno == node.end_lineno
        ):
            continue
        if node.lineno <= line <= (node.end_lineno or line):
            return node.lineno, ast.unparse(node)
    return line, linecache.getline(file, line).strip()
