"""The caller's half of ``tickets probe`` and ``trace``: check the request, ask a worker, type its answer.

The worker runs the other half, ``measure.probe`` or ``measure.recorded``.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from finding_tickets.claims.laws import Range, range_text
from finding_tickets.documents.run_command import TARGET_FORMS, TargetKind, target_kind
from finding_tickets.errors import BadDataError, UnreachableError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.ground.git import untracked_among
from finding_tickets.measure.processes.isolation import PRELOADED, Isolation, Task
from finding_tickets.measure.tasks import PROBE, TRACE, At, CannotMeasureError, RunJob
from finding_tickets.model.verification import OperationCost
from finding_tickets.model.vocabulary import MOST_POINTS
from finding_tickets.register.files import state_of
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import collect_files
from finding_tickets.verify.judge import parse_worker_result

PRELOAD = (*PRELOADED, "finding_tickets.measure.probe")
PRELOAD_FOR_TRACES = (*PRELOADED, "finding_tickets.measure.recorded")
# How much longer than its time a program may take to end.
ENDING_SECONDS = 5.0
ProbedKind = Literal[TargetKind, "trace"]


@dataclass(frozen=True)
class ProbedCost:
    """The cost of each run by one metric or at one site, and its growth."""

    values: tuple[int, ...]
    law: str | None = None
    growth: str | None = (
        None  # what is known where there is no law, or the range of calls that differ
    )
    ranges: tuple[
        Range | None, ...
    ] = ()  # of a metric with modelled numbers, what they can be

    def __str__(self) -> str:
        """The law or what stands in for it, or the value of the only run; with ``~`` if it is modelled."""
        text = self.law or self.growth or str(self.values[0])
        modelled = [each for each in self.ranges if each]
        return f"~{text} ({range_text(modelled)})" if modelled else text


@dataclass(frozen=True)
class SourceLine:
    """A line of a file, and the function that it is in."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class CallingLine(SourceLine):
    """A line of the repository's own code that leads to a site in an installed package."""

    statement: str


@dataclass(frozen=True)
class ProbedSite(SourceLine):
    """A source line that waits, copies or allocates: its text, and how often it does so."""

    what: str
    text: str
    cost: ProbedCost
    statement: str = ""  # all of its lines, on one
    begin: int = 0  # the first of its lines, where it is known
    called_from: tuple[CallingLine, ...] = ()  # the most frequent first
    hidden: str = ""  # the function of torch, and its file, in which it waits
    repeated: bool = True  # whether it may have run more than once
    per_step: int = 0  # how often it waits in each step of the optimizer, if that is the same in all
    waited: float = 0.0  # microseconds that the host waited, where a trace tells
    nbytes: int = 0  # copied or allocated, where a trace tells


@dataclass(frozen=True)
class ProbedCalls:
    """The number of calls that count at a point and that are set apart, and the first call that differs."""

    counted: int
    apart: int
    differ: str


@dataclass(frozen=True, kw_only=True)
class Probed:
    """The cost of a target."""

    target: str
    kind: ProbedKind
    meter: str
    torch: str
    device: str
    points: tuple[At, ...]
    metrics: dict[str, ProbedCost]  # at each of the points
    sites: tuple[
        ProbedSite, ...
    ]  # waits, hazards, copies, allocations; of each, the most frequent first
    errors: tuple[str, ...]  # a text for each run that did not end well
    not_measured: tuple[
        str, ...
    ]  # the points that the meter cannot run, with the reason
    unknown: tuple[
        str, ...
    ]  # operations that may wait and have no cost rule: they are not counted
    approximate: tuple[str, ...]  # operations whose launches and memory are estimates
    printed: int  # bytes that the target wrote to its output
    function: str  # as a ticket names it; empty unless a function was probed
    files: tuple[
        str, ...
    ]  # the repository's files that were imported, run or named in arguments
    data: tuple[str, ...] = ()  # files and folders that it read, and that git has not
    is_interrupted: bool = False  # whether the user ended it
    operations: tuple[
        OperationCost, ...
    ] = ()  # of the last point, where they were asked for
    calls: tuple[
        ProbedCalls, ...
    ] = ()  # at each point, if what happens within a function counts


@dataclass(frozen=True, kw_only=True)
class ProbeRequest:
    """The request of the user, and the limits of the worker that measures it."""

    target: str
    root: Path
    arguments: Sequence[str] = ()
    sweep: Sequence[str] = ()
    verifier: Path | None = None
    meter: str = "simulated"
    devices: int = 1
    compiling: str = "eager"  # or refuse: what becomes of code for torch.compile on a simulated device
    within: str | None = None  # the function inside whose calls alone things count
    after: int | None = None  # how many of its calls are set apart
    operations: bool = False  # whether to tell what each operation costs
    own_lines: bool = (
        False  # whether what installed packages do counts at the line that led there
    )
    timeout: float  # seconds
    memory: int  # bytes

    @property
    def verifier_path(self) -> str | None:
        """Return the path of the verifier from the root; raises ``UsageError`` if the file does not exist."""
        return _path_from_root(self.verifier, self.root) if self.verifier else None

    @property
    def within_path(self) -> str:
        """The function to count in, with its file by the path from the root; raises ``UsageError``."""
        if not self.within:
            return ""
        if target_kind(self.within) != "function":
            raise UsageError(
                f"--within {self.within}: not path.py:function or package.module:function"
            )
        return _function_from_root(self.within, self.root)

    def command(self, *more: str) -> str:
        """The command line by which anybody measures the same again."""
        options = [*(["--within", self.within] if self.within else []), *more]
        options += [text for each in self.sweep for text in ("--sweep", each)]
        options += ["--verifier", self.verifier_path] if self.verifier_path else []
        options += ["--after", str(self.after)] if self.after is not None else []
        arguments = ["--", *self.arguments] if self.arguments else []
        return shlex.join(["tickets", "probe", self.target, *options, *arguments])

    def run_text(self, function: str) -> str:
        """The target as a ticket says what to run; ``function`` is the name of one that was probed."""
        kind, _ = _kind_and_name(self.target, self.root)
        file, colons, test = self.target.partition("::")
        run = function or self.target
        if kind in {"script", "test"}:
            path = _path_from_root(Path(file), self.root)
            # A bare name would be that of a module.
            run = f"{path if path.endswith('.py') or '/' in path else f'./{path}'}{colons}{test}"
        return shlex.join([run, *self.arguments])


_PROBED = TypeAdapter(Probed)
_KEPT, _MOST_KEPT = "probes", 20


def probe(request: ProbeRequest, isolation: Isolation) -> Probed:
    """Measure a target.

    Raises:
        UsageError: The target does not exist, or takes other arguments.
        UnreachableError: It could not be measured.
    """
    kind, name = _kind_and_name(request.target, request.root)
    if kind != "function" and (request.sweep or request.verifier):
        raise UsageError(
            f"{request.target} is a {kind}",
            hint="a sweep or a verifier needs module:function",
        )
    if request.sweep and request.verifier:
        raise UsageError(
            "a verifier has its own sweep: give either --sweep or --verifier"
        )
    if kind == "function" and request.arguments:
        raise UsageError(
            "a function takes no arguments of the command line",
            hint="--sweep n=1,2,5,9",
        )
    if request.after is not None and not request.within:
        raise UsageError(
            "--after counts calls of a function", hint="--within train.py:step"
        )
    job = RunJob(
        code=str(request.root),
        kind=kind,
        target=name,
        folder=str(Path.cwd()),
        arguments=request.arguments,
        sweep=points(request.sweep),
        verifier=request.verifier_path or "",
        meter=request.meter,
        devices=request.devices,
        compiling="refuse" if request.compiling == "refuse" else "eager",
        within=request.within_path,
        after=request.after,
        operations=request.operations,
        own_lines=request.own_lines,
        seconds=request.timeout,
    )
    timeout = request.timeout + ENDING_SECONDS
    task = Task(
        target=PROBE,
        payload=job,
        root=request.root,
        timeout=timeout,
        memory=request.memory,
    )
    with _ending_on_interrupt(isolation) as interrupts:
        ((_, outcome),) = isolation.run({request.target: task})
    if isinstance(outcome.value, dict) and "wrong" in outcome.value:
        raise UsageError(str(outcome.value["wrong"]))
    try:
        answer = parse_worker_result(outcome, _PROBED)
    except CannotMeasureError as error:
        if interrupts:
            message = (
                "nothing was counted: what ran could not be stopped between operations"
            )
            raise KeyboardInterrupt(message) from None
        raise UnreachableError(f"not measured: {error}", file=request.target) from None
    used = collect_files([outcome], request.root)
    data = untracked_among(
        request.root, [file for file in used if not file.endswith(".py")]
    )
    probed = replace(
        answer, target=request.target, data=tuple(data), is_interrupted=bool(interrupts)
    )
    if not (probed.errors or interrupts):
        item = _PROBED.dump_python(probed, mode="json")
        kept = {"begin": outcome.used.begin, "files": [*used], "probed": item}
        write_entry(_KEPT, _name_of(request), json.dumps(kept).encode(), _MOST_KEPT)
    return probed


def kept_probe(request: ProbeRequest) -> Probed | None:
    """Return what was measured of a target before, if no file that it used has changed since; else None."""
    content = read_entry(_KEPT, _name_of(request))
    # What is damaged, or of another build of this version, is measured again.
    with suppress(ValueError, KeyError, TypeError):
        kept = json.loads(content or b"{}")
        for name in kept["files"]:
            now = state_of(f"{request.root}/{name}")
            if now is None or now.changed >= kept["begin"]:
                return None
        known = _PROBED.validate_python(kept["probed"])
        return known if known.operations or not request.operations else None
    return None


def _name_of(request: ProbeRequest) -> str:
    """Return the name of what is kept of a request, as it is made in the current folder."""
    # What each operation costs is told beside the rest.
    text = (
        f"{__version__} {own_torch()} {Path.cwd()} {replace(request, operations=False)}"
    )
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


@contextmanager
def _ending_on_interrupt(isolation: Isolation) -> Iterator[list[int]]:
    """Let the first interrupt end what runs, so that its costs until then are known; yield the interrupts."""
    interrupts: list[int] = []

    def end(number: int, _: object) -> None:
        interrupts.append(number)
        signal.signal(signal.SIGINT, before)
        isolation.end_tasks()

    before = signal.signal(signal.SIGINT, end)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def points(sweep: Iterable[str]) -> list[At]:
    """All combinations of the values in texts such as ``n=1,2,5,9``; an empty list for no texts."""
    variables = values_of(sweep)
    if not variables:
        return []
    found = [
        dict(zip(variables, at, strict=True)) for at in product(*variables.values())
    ]
    if len(found) > MOST_POINTS:
        raise UsageError(f"the sweep has {len(found)} points, more than {MOST_POINTS}")
    return found


def values_of(sweep: Iterable[str]) -> dict[str, list[int]]:
    """The values of each variable in texts such as ``n=1,2,5,9``."""
    variables: dict[str, list[int]] = {}
    for text in sweep:
        name, equals, values = text.partition("=")
        numbers = values.split(",")
        are_integers = all(
            re.fullmatch(r"-?[0-9]{1,18}", number.strip()) for number in numbers
        )
        if not (equals and name.isidentifier() and are_integers):
            raise UsageError(
                f"--sweep {text}: not a name and integers", hint="--sweep n=1,2,5,9"
            )
        if name in variables:
            raise UsageError(f"--sweep {name} is given twice")
        variables[name] = list(dict.fromkeys(map(int, numbers)))
    return variables


def _kind_and_name(target: str, root: Path) -> tuple[TargetKind, str]:
    """Return the kind of a target, and its name for ``measure.probe``. Nothing is imported."""
    kind = target_kind(target)
    if target.endswith(".ipynb"):
        hint = (
            f"jupyter nbconvert --to script {shlex.quote(target)} makes a script of it"
        )
        raise UsageError(f"{target} is a notebook", hint=hint)
    if kind == "test":
        return kind, target
    if kind == "function":
        return kind, _function_from_root(target, root)
    if Path(target).is_file():
        return "script", str(Path(target).resolve())
    if kind == "module":
        return kind, target
    hint = f"a target is {TARGET_FORMS}; arguments of its own come after --"
    if re.fullmatch(r".+\.py:[0-9]+", target):
        hint = f"tickets probe {target.rpartition(':')[0]} lists its lines"
    raise UsageError(f"there is no file {target}", hint=hint)


def _function_from_root(function: str, root: Path) -> str:
    """A function with its file, if it names one, by the path from the root."""
    module, _, name = function.rpartition(":")
    return (
        f"{_path_from_root(Path(module), root)}:{name}"
        if module.endswith(".py")
        else function
    )


def _path_from_root(file: Path, root: Path) -> str:
    """A file by its path from the root, given one from the current folder or from the root."""
    here = next(
        (path.resolve() for path in (file, root / file) if path.is_file()), None
    )
    if here is None:
        raise UsageError(f"there is no file {file}")
    if not here.is_relative_to(root):
        raise UsageError(
            f"{file} is outside {root}", hint="name the repository with --root"
        )
    return here.relative_to(root).as_posix()


@dataclass(frozen=True, kw_only=True)
class TracedRun:
    """The contents of a trace: the run that it records."""

    probed: Probed  # the lines and totals, as a probe of the run would tell
    sha256: str  # of the file
    has_stacks: bool  # whether Python's stacks were recorded, so that there are lines
    has_lines: bool  # whether these are the lines that ran, not those where their functions begin
    has_memory: bool  # whether allocations were recorded
    calls: int  # ops that were outermost in ATen
    distinct: int  # of these, in op or arguments
    sums: tuple[str, ...]  # what was added up to see that no event is lost
    left_out: tuple[str, ...]  # what was not attributed, and why
    agreement: tuple[
        str, ...
    ] = ()  # of the simulation, as ``simcuda.agree --trace`` prints it, if asked
    compared: dict[str, Any] | None = None  # the same as the item of its JSON
    undecided: str = (
        ""  # why the simulation was compared with nothing, if that was asked
    )


_TRACED = TypeAdapter(TracedRun)


def read_traces(
    files: Sequence[Path],
    root: Path,
    isolation: Isolation,
    *,
    only_lines: bool,
    timeout: float,
    memory: int,
) -> Iterator[TracedRun | BadDataError]:
    """Read each trace; yield its contents, or why it cannot be used. Sources are looked up below ``root``.

    With ``only_lines`` nothing is compared with the simulation, which takes longer than to read.
    """
    tasks = {}
    for file in files:
        where = {"root": str(root), "file": str(file.resolve()), "target": str(file)}
        payload = {**where, "only_lines": only_lines}
        tasks[file] = Task(
            target=TRACE, payload=payload, root=root, timeout=timeout, memory=memory
        )
    # Tasks are removed as they end.
    outcomes = dict(isolation.run(tasks))
    for file in files:
        try:
            yield parse_worker_result(outcomes[file], _TRACED)
        except CannotMeasureError as error:
            value = outcomes[file].value
            wrong = value.get("wrong") if isinstance(value, dict) else None
            yield BadDataError(str(wrong or error), file=str(file))
