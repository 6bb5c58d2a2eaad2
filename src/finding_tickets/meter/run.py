"""Measure one ticket: every variant at every point of the sweep, and whether their results agree."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from finding_tickets.meter.choice import choose
from finding_tickets.meter.compare import difference
from finding_tickets.meter.loading import imported_files, load_function, load_workload
from finding_tickets.meter.patches import unpatched
from finding_tickets.meter.places import portable
from finding_tickets.meter.report import (
    Agreement,
    CannotMeasureError,
    Comparison,
    Job,
    Report,
    Run,
    Skipped,
    Source,
    at_text,
)
from finding_tickets.meter.trial import Function, Meter, Trial, arguments
from finding_tickets.meter.unrun import unrun
from finding_tickets.workload import Point, Workload


def measure(job: Job) -> Report:
    """Import what a job names and measure it; raises ``CannotMeasureError`` and what the code raises."""
    root = Path(job.root)
    # One thread: several tickets are measured at once, and sums do not depend on how work is split.
    torch.set_num_threads(1)
    workload = load_workload(job.verifier, root)
    functions = {name: _loaded(name, source, root) for name, source in job.variants.items()}
    report = run(workload, functions, choose(job.meter), root, job.comparisons, job.graph_breaks)
    return replace(report, files=imported_files(root))


def run(
    workload: Workload,
    functions: Mapping[str, Function],
    meter: Meter,
    root: Path,
    comparisons: Collection[Comparison] = (),
    traced: Collection[str] = (),
) -> Report:
    """Measure ``functions``, by the names of their variants; paths are reported relative to ``root``.

    ``traced`` names the variants whose graph breaks are counted too.
    """
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    runs: dict[str, list[Run]] = {name: [] for name in functions}
    agreements, not_measured = [], []
    for point in workload.sweep:
        if why := meter.cannot_run(workload, point):
            not_measured.append(Skipped(dict(point), why))
            continue
        trials = {
            name: _trial(name, meter, workload, point, function, root) for name, function in functions.items()
        }
        agreements += [_agreement(workload, point, comparison, trials) for comparison in comparisons]
        for name, trial in trials.items():
            runs[name].append(_recorded(point, trial, root))
    # The compiler's machinery is large: loaded now, it does not slow the collections between runs.
    for name in traced:
        runs[name] = [_traced(workload, run, functions[name]) for run in runs[name]]
    return Report(
        meter=meter.name,
        torch=torch.__version__.split("+")[0],
        device=meter.device,
        sweep=tuple(dict(point) for point in workload.sweep),
        runs={name: tuple(of_variant) for name, of_variant in runs.items()},
        agreements=tuple(agreements),
        not_measured=tuple(not_measured),
    )


def _loaded(name: str, source: Source, root: Path) -> Function:
    with _named(name), unpatched():
        return load_function(source, root)


def _trial(
    name: str, meter: Meter, workload: Workload, point: Point, function: Function, root: Path
) -> Trial:
    """One run; raises ``CannotMeasureError`` where it replaced parts of torch or left its work undone."""
    with _named(f"{name} at {at_text(point)}"):
        trial = meter.measure(workload, point, function, root)
        if kind := unrun(trial.result):
            raise CannotMeasureError(
                f"returned {kind}, which has not run; give the workload a read that consumes it"
            )
    return trial


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Say which variant could not be measured."""
    try:
        yield
    except CannotMeasureError as error:
        raise CannotMeasureError(f"{what}: {error}") from None


def _recorded(point: Point, trial: Trial, root: Path) -> Run:
    measured = trial.measurement
    sites = tuple(replace(site, file=portable(site.file, root)) for site in measured.sites)
    return Run(dict(point), replace(measured, sites=sites), trial.error)


def _traced(workload: Workload, run: Run, function: Function) -> Run:
    """The run with its graph breaks; tracing needs a run that did not raise, and the CPU is one device."""
    point = Point(**run.at)
    if run.error or workload.devices(point) > 1:
        return run
    from finding_tickets.meter.graph_breaks import graph_breaks

    breaks = graph_breaks(function, arguments(workload, point, "cpu", workload.seed))
    metrics = {**run.measurement.metrics, "graph_breaks": breaks}
    return replace(run, measurement=replace(run.measurement, metrics=metrics))


def _agreement(
    workload: Workload, point: Point, comparison: Comparison, trials: Mapping[str, Trial]
) -> Agreement:
    expected, actual = trials[comparison.target], trials[comparison.variant]
    if expected.error:
        return Agreement(comparison, dict(point), skipped=True)
    if actual.error:
        return Agreement(comparison, dict(point), difference=f"raised {actual.error}")
    return Agreement(
        comparison, dict(point), _difference(workload, comparison, expected.result, actual.result)
    )


def _difference(workload: Workload, comparison: Comparison, expected: Any, actual: Any) -> str | None:
    """By the workload's own way where it has one and the claim states no tolerance."""
    if workload.same is None or comparison.tolerance is not None:
        return difference(expected, actual, comparison.tolerance)
    found = workload.same(expected, actual)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"same must return None or the difference in words, not {found!r}")
    return found
