"""Run what somebody points at under a meter: a script, a module, a function or a test."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import simcuda
from finding_tickets.measure.choice import choose
from finding_tickets.measure.counting import measurement_of
from finding_tickets.measure.installed import torch_version
from finding_tickets.measure.loading import import_from, imported_digests, load_function, load_workload
from finding_tickets.measure.places import belongs_to, describe, is_out_of_host_memory, place, portable
from finding_tickets.measure.pytest_node import run_node
from finding_tickets.measure.report import At, CannotMeasureError, Report, Run, WrongTargetError
from finding_tickets.measure.run import run
from finding_tickets.measure.source import Source
from finding_tickets.measure.trial import Function, Meter
from finding_tickets.workload import Point, Workload
from simcuda.measurement import HEAVIEST_FIRST

NAME = "target"
"""What the target is called where reports have variants."""

ONCE = {"run": 1}
"""The only point of a target that has no sweep."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One target to run.

    ``kind`` is ``script`` (``name`` is its absolute path), ``module``, ``function`` (``module:function`` or
    ``path.py:function``, the path from ``root``) or ``test`` (a pytest node). ``arguments`` are those of a
    script or a module, or further ones of pytest. A function is called with the values of each point of the
    ``sweep`` by name, or with the arguments that the ``verifier``, a file below ``root``, builds.
    """

    root: str
    kind: str
    name: str
    arguments: tuple[str, ...] = ()
    sweep: tuple[At, ...] = ()
    verifier: str = ""
    meter: str = "auto"
    devices: int = 1


@dataclass(frozen=True)
class Line:
    """A source line that cost something: its text, and ``what`` it cost how often in each run."""

    file: str
    line: int
    function: str
    what: str
    counts: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Probe:
    """What running a target showed: a report with one variant, ``NAME``, and the lines, heaviest first.

    ``function`` is where a function stands, in the form of a variant. ``positional`` says whether the names
    of the sweep are its first parameters, in this order.
    """

    report: Report
    lines: tuple[Line, ...]
    function: str = ""
    positional: bool = True


def probe(order: Order) -> Probe:
    """Run a target and count what it costs.

    A function is warmed up first, as verifiers do, so that it costs what a verification will find. Scripts,
    modules and tests run once, as they are.

    Raises:
        WrongTargetError: The target cannot be found, or not be called like that.
        CannotMeasureError: The meter cannot measure here, or there was nothing to measure.
    """
    root = Path(order.root)
    import_from(root)
    meter = choose(order.meter)
    function = _loaded(order, root) if order.kind == "function" else None
    report = _swept(order, function, root, meter) if function else _once(order, root, meter)
    return Probe(
        report=replace(report, files=imported_digests(root)),
        lines=_lines(report.runs[NAME], root),
        function=_variant(order.name, root) if function else "",
        positional=function is None or _is_positional(function, order),
    )


def _loaded(order: Order, root: Path) -> Function:
    source = Source(*order.name.rsplit(":", 1))
    if not source.module.endswith(".py"):
        _check_module(source.module)
    try:
        function = load_function(source, root)
    except CannotMeasureError as error:
        raise WrongTargetError(str(error)) from None
    if not order.verifier:
        _check_call(function, order)
    return function


def _check_module(name: str) -> None:
    try:
        known = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        known = not f"{name}.".startswith(f"{error.name}.")
    if not known:
        raise WrongTargetError(f"there is no module {name}")


def _check_call(function: Function, order: Order) -> None:
    try:
        inspect.signature(function).bind(**(order.sweep[0] if order.sweep else {}))
    except TypeError as error:
        names = [name for name, each in _parameters(function).items() if each.default is each.empty]
        needed = " ".join(f"--sweep {name}=1,2,5,9" for name in names) or "no --sweep"
        raise WrongTargetError(f"{order.name}: {error}; it takes {needed}, or a --verifier") from None
    except ValueError:
        return  # A function without a signature says itself what is wrong when it is called.


def _parameters(function: Function) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _is_positional(function: Function, order: Order) -> bool:
    names = list(order.sweep[0]) if order.sweep else []
    try:
        first = list(_parameters(function).values())[: len(names)]
    except ValueError:
        return not names
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return [each.name for each in first if each.kind in kinds] == names


def _variant(name: str, root: Path) -> str:
    """A function as tickets name it: by its file where that is the repository's own, else by its module."""
    module, _, function = name.rpartition(":")
    file = getattr(sys.modules.get(module), "__file__", None)
    own = file and belongs_to(root, Path(file))
    return f"{portable(file, root)}:{function}" if file and own else name


def _swept(order: Order, function: Function, root: Path, meter: Meter) -> Report:
    """Run a function at every point of its sweep."""
    if order.verifier:
        return run(load_workload(order.verifier, root), {NAME: function}, meter, root)

    def build(point: Point, device: str, generator: torch.Generator) -> tuple[dict[str, int]]:  # noqa: ARG001 - a workload's signature
        return (dict(point) if order.sweep else {},)

    def call(by_name: dict[str, int]) -> Any:
        return function(**by_name)

    workload = Workload(
        ticket=order.name,
        build=build,
        sweep=[Point(**at) for at in order.sweep or (ONCE,)],
        devices=lambda point: order.devices,  # noqa: ARG005 - the same at each
    )
    return run(workload, {NAME: call}, meter, root)


def _once(order: Order, root: Path, meter: Meter) -> Report:
    """Run a script, a module or a test, without a warm-up."""
    with meter.devices(order.devices) as gpu:
        if order.kind == "test":
            ran = run_node(gpu, order.name, order.arguments, root)
        else:
            ran = _counted(gpu, _program(order), root)
    sites = tuple(replace(site, file=portable(site.file, root)) for site in ran.measurement.sites)
    done = replace(ran, at=ONCE, measurement=replace(ran.measurement, sites=sites))
    return Report(
        meter=meter.name,
        torch=torch_version(),
        device=meter.device,
        sweep=(ONCE,),
        runs={NAME: (done,)},
    )


def _program(order: Order) -> Callable[[], object]:
    """What ``python script.py`` and ``python -m module`` would run, found where these would find it."""
    if order.kind == "module":
        sys.path.insert(0, str(Path.cwd()))
        _check_module(order.name)
        sys.argv = [order.name, *order.arguments]
        return lambda: runpy.run_module(order.name, run_name="__main__", alter_sys=True)
    sys.path.insert(0, str(Path(order.name).parent))
    sys.argv = [order.name, *order.arguments]
    return lambda: runpy.run_path(order.name, run_name="__main__")


def _counted(gpu: simcuda.Gpu, program: Callable[[], object], root: Path) -> Run:
    before = gpu.live_bytes()
    with gpu.measure() as counted:
        error = _ending(program, root)
    return Run({}, measurement_of(counted, gpu.live_bytes() - before, raised=error is not None), error)


def _ending(program: Callable[[], object], root: Path) -> str | None:
    """How a program ended, where that was not well: many end well in a call of ``sys.exit``."""
    try:
        program()
    except SystemExit as end:
        if end.code not in (None, 0):
            return f"{place(end, root) or 'it'} called sys.exit({end.code!r})"
    except Exception as error:
        if is_out_of_host_memory(error):
            raise
        return describe(error, root)
    return None


def _lines(runs: Sequence[Run], root: Path) -> tuple[Line, ...]:
    """Every line with its counts: first what stops the host, then what is wrong, then what moves or makes."""
    counts = [
        {(site.file, site.line, site.function, site.what): site.count for site in done.measurement.sites}
        for done in runs
    ]
    places = sorted({key for done in counts for key in done})
    found = (Line(*key, tuple(done.get(key, 0) for done in counts), _text(*key[:2], root)) for key in places)
    return tuple(sorted(found, key=lambda line: (HEAVIEST_FIRST.index(line.what), -max(line.counts))))


def _text(file: str, line: int, root: Path) -> str:
    path = next((path for path in _candidates(file, root) if path.is_file()), None)
    return linecache.getline(str(path), line).strip() if path else ""


def _candidates(file: str, root: Path) -> Iterator[Path]:
    """Where a portable path may lead: below the root, or to what is installed."""
    yield root / file
    yield from (Path(entry) / file for entry in sys.path if entry)
