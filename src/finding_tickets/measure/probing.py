"""Probe what the user names, in a process of its own, with laws where there is a sweep."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from finding_tickets.claims.fitting import Fit, SiteFit, fit_metrics, fit_sites
from finding_tickets.errors import UsageError
from finding_tickets.measure.isolation import PRELOADED, Isolation, Task
from finding_tickets.measure.report import At, Run, WrongTargetError, at_text

if TYPE_CHECKING:
    from finding_tickets.measure.probe import Line, Probe

TARGET = f"{__name__}:measure"
PRELOAD = (*PRELOADED, "finding_tickets.measure.probe", __name__)
MOST_POINTS = 1000
FORMS = "a target is script.py, package.module, package.module:function or tests/test_x.py::test_y"


@dataclass(frozen=True)
class Cost:
    """How much of something each run cost; the law by which it grows, or else what is known of that."""

    values: tuple[int, ...]
    law: str | None = None
    growth: str | None = None

    def __str__(self) -> str:
        """The law or what stands in for it, or the value of the only run."""
        return self.law or self.growth or str(self.values[0])


@dataclass(frozen=True)
class ProbedSite:
    """A source line that waits, copies or allocates, its text, and how often it does."""

    file: str
    line: int
    function: str
    what: str
    text: str
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What a target cost: the sites, heaviest first, and every metric, at each of ``points``.

    ``errors`` has a text for each run that did not end well. ``function`` is how a ticket names a function,
    and ``positional`` whether the sweep names its first parameters. ``files`` are those of the repository
    that were imported, ``printed`` the bytes that the target wrote to its output.
    """

    target: str
    kind: str
    meter: str
    torch: str
    device: str
    points: tuple[At, ...]
    metrics: dict[str, Cost]
    sites: tuple[ProbedSite, ...]
    errors: tuple[str, ...]
    not_measured: tuple[str, ...]
    unknown: tuple[str, ...]
    approximate: tuple[str, ...]
    printed: int
    function: str
    positional: bool
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user asks for; ``verifier`` is a file of the repository at ``root``."""

    target: str
    root: Path
    arguments: Sequence[str] = ()
    sweep: Sequence[str] = ()
    verifier: Path | None = None
    meter: str = "auto"
    devices: int = 1
    timeout: float = 120.0
    memory: int = 8 * 1024**3

    @property
    def verifier_path(self) -> str | None:
        """The verifier by its path from the root.

        Raises:
            UsageError: There is no such file in the repository.
        """
        return _below(self.verifier, self.root) if self.verifier else None


def order_of(wanted: Wanted) -> dict[str, Any]:
    """The order for ``meter.probe`` to run a target; nothing is imported for it.

    Raises:
        UsageError: There is no such file, or something is given that this kind of target does not take.
    """
    kind, name = _kind(wanted)
    if kind != "function" and (wanted.sweep or wanted.verifier):
        raise UsageError(f"{wanted.target} is a {kind}", hint="a sweep or a verifier needs module:function")
    if wanted.sweep and wanted.verifier:
        raise UsageError("a verifier brings a sweep along: give --sweep or --verifier")
    if kind == "function" and wanted.arguments:
        raise UsageError("a function takes no arguments of the command line", hint="--sweep n=1,2,5,9")
    return {
        "root": str(wanted.root),
        "kind": kind,
        "name": name,
        "arguments": list(wanted.arguments),
        "sweep": points(wanted.sweep),
        "verifier": wanted.verifier_path or "",
        "meter": wanted.meter,
        "devices": wanted.devices,
    }


def points(sweep: Iterable[str]) -> list[At]:
    """All combinations of the values in ``n=1,2,5,9`` and its like; none without any.

    Raises:
        UsageError: A text has another form, a name stands twice, or there are too many combinations.
    """
    variables: dict[str, list[int]] = {}
    for text in sweep:
        name, equals, values = text.partition("=")
        numbers = values.split(",")
        if not (equals and name.isidentifier() and all(_is_integer(number) for number in numbers)):
            raise UsageError(f"--sweep {text}: not a name and integers", hint="--sweep n=1,2,5,9")
        if name in variables:
            raise UsageError(f"--sweep {name} is given twice")
        variables[name] = list(dict.fromkeys(map(int, numbers)))
    found = (
        [dict(zip(variables, at, strict=True)) for at in product(*variables.values())] if variables else []
    )
    if len(found) > MOST_POINTS:
        raise UsageError(f"the sweep has {len(found)} points, more than {MOST_POINTS}")
    return found


def probe(wanted: Wanted, isolation: Isolation) -> Probed | str:
    """What a target costs, or the reason why that could not be measured.

    Raises:
        UsageError: There is no such target, or it cannot be called like that.
    """
    task = Task(
        target=TARGET,
        payload=order_of(wanted),
        root=wanted.root,
        timeout=wanted.timeout,
        memory=wanted.memory,
    )
    ((_, outcome),) = isolation.run({wanted.target: task})
    if outcome.reason is not None:
        return outcome.reason
    value = outcome.value if isinstance(outcome.value, dict) else {}
    if "wrong" in value:
        raise UsageError(str(value["wrong"]))
    try:
        return TypeAdapter(Probed).validate_python({**value, "target": wanted.target})
    except ValidationError as error:
        return f"what came back is no measurement: {error.errors()[0]['msg']}"


def measure(payload: dict[str, Any]) -> dict[str, Any]:
    """What runs in an isolated process: a ``Probed`` without its target, or what is wrong with the order."""
    from finding_tickets.measure.probe import Order
    from finding_tickets.measure.probe import probe as run

    texts, points = tuple(payload["arguments"]), tuple(payload["sweep"])
    order = Order(**{**payload, "arguments": texts, "sweep": points})
    try:
        done = run(order)
    except WrongTargetError as error:
        return {"wrong": str(error)}
    return asdict(_probed(order.kind, done))


def _probed(kind: str, done: Probe) -> Probed:
    report = done.report
    (runs,) = report.runs.values()
    metrics: Mapping[str, Fit] = fit_metrics(runs) if len(runs) > 1 else {}
    sites = {_place(site): site.fit for site in fit_sites(runs)} if len(runs) > 1 else {}
    counted = runs[0].measurement.metrics if runs else {}
    return Probed(
        target="",
        kind=kind,
        meter=report.meter,
        torch=report.torch,
        device=report.device,
        points=tuple(run.at for run in runs),
        metrics={
            name: _cost((run.measurement.metrics[name] for run in runs), metrics.get(name))
            for name in counted
        },
        sites=tuple(
            ProbedSite(*_place(line), line.text, _cost(line.counts, sites.get(_place(line))))
            for line in done.lines
        ),
        errors=tuple(_errors(runs)),
        not_measured=tuple(f"{at_text(skipped.at)}: {skipped.why}" for skipped in report.not_measured),
        unknown=tuple(sorted({name for run in runs for name in run.measurement.unknown})),
        approximate=tuple(sorted({name for run in runs for name in run.measurement.approximate})),
        printed=_printed(),
        function=done.function,
        positional=done.positional,
        files=tuple(report.files),
    )


def _cost(values: Iterable[int], fit: Fit | None) -> Cost:
    return Cost(tuple(values), fit.law, fit.growth) if fit else Cost(tuple(values))


def _place(line: Line | SiteFit) -> tuple[str, int, str, str]:
    return line.file, line.line, line.function, line.what


def _errors(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        if run.error:
            yield f"at {at_text(run.at)}: {run.error}" if len(runs) > 1 else run.error


def _printed() -> int:
    """The bytes that the target has written: in this process, all output goes to one file."""
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fstat(sys.__stdout__.fileno()).st_size if sys.__stdout__ else 0


def _kind(wanted: Wanted) -> tuple[str, str]:
    """What a target is, and its name as ``meter.probe`` takes it."""
    target = wanted.target
    if "::" in target:
        return "test", target
    module, colon, function = target.rpartition(":")
    if colon and all(part.isidentifier() for part in function.split(".")):
        return "function", f"{_module(module, wanted.root)}:{function}"
    if Path(target).is_file():
        return "script", str(Path(target).resolve())
    if target.endswith(".py") or not all(part.isidentifier() for part in target.split(".")):
        raise UsageError(f"there is no file {target}", hint=FORMS)
    return "module", target


def _module(name: str, root: Path) -> str:
    """A module by its dotted name, or a file by its path from the root."""
    if name.endswith(".py"):
        return _below(Path(name), root)
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is neither a module nor a file", hint=FORMS)
    return name


def _below(file: Path, root: Path) -> str:
    """A file by its path from the root, given one from the current folder or from the root.

    Raises:
        UsageError: There is no such file in the repository.
    """
    here = next((path.resolve() for path in (file, root / file) if path.is_file()), None)
    if here is None:
        raise UsageError(f"there is no file {file}")
    if not here.is_relative_to(root):
        raise UsageError(f"{file} is outside of {root}", hint="name the repository with --root")
    return here.relative_to(root).as_posix()


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", text.strip()) is not None
