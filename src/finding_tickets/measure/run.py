"""Measure one ticket: every variant at every point of the sweep, and whether their results agree."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from finding_tickets.measure.agreement import agreement
from finding_tickets.measure.choice import choose
from finding_tickets.measure.installed import torch_version
from finding_tickets.measure.kept import keep
from finding_tickets.measure.loading import imported_digests, load_function, load_workload
from finding_tickets.measure.patches import unpatched
from finding_tickets.measure.places import portable
from finding_tickets.measure.repeated import check_repeated
from finding_tickets.measure.report import CannotMeasureError, Job, Report, Run, Skipped, at_text
from finding_tickets.measure.source import Comparison, Source
from finding_tickets.measure.trial import Function, Meter, Trial, arguments
from finding_tickets.measure.unrun import unrun
from finding_tickets.workload import Point, Workload


def measure(
    job: Job, standing_in: Callable[[Mapping[str, Function]], Mapping[str, Function]] | None = None
) -> Report:
    """Import what a job names and measure it; raises ``CannotMeasureError`` and what the code raises.

    ``standing_in`` may give other functions for variants, once they are loaded.
    """
    root, code = Path(job.root), Path(job.code)
    # One thread: several tickets are measured at once, and sums do not depend on how work is split.
    torch.set_num_threads(1)
    workload = load_workload(job.verifier, root, code)
    loaded = {name: _loaded(name, source, code) for name, source in job.variants.items()}
    files = imported_digests(root)
    functions = standing_in(loaded) if standing_in else loaded

    def keep_result(variant: str, place: int, result: Any) -> None:
        if variant in job.kept:
            keep(Path(job.results), variant, place, result)

    meter = choose(job.meter)
    report = run(workload, functions, meter, code, job.comparisons, job.graph_breaks, keep_result)
    check_repeated(report, workload, functions, meter, code)
    return replace(report, files=imported_digests(root) | files)


def run(
    workload: Workload,
    functions: Mapping[str, Function],
    meter: Meter,
    root: Path,
    comparisons: Collection[Comparison] = (),
    traced: Collection[str] = (),
    keeping: Callable[[str, int, Any], None] | None = None,
) -> Report:
    """Measure ``functions``, by the names of their variants; paths are reported relative to ``root``.

    ``traced`` names the variants whose graph breaks are counted too. ``keeping`` is told the results: the
    variant, the place of the point in the sweep, and what it returned there.
    """
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    runs: dict[str, list[Run]] = {name: [] for name in functions}
    agreements, not_measured = [], []
    for place, point in enumerate(workload.sweep):
        if why := meter.cannot_run(workload, point):
            not_measured.append(Skipped(dict(point), why))
            continue
        trials = {
            name: _trial(name, meter, workload, point, function, root) for name, function in functions.items()
        }
        agreements += [agreement(workload, point, comparison, trials) for comparison in comparisons]
        for name, trial in trials.items():
            if keeping and not trial.error:
                with _named(f"{name} at {at_text(point)}"):
                    keeping(name, place, trial.result)
            runs[name].append(_recorded(point, trial, root))
    # The compiler's machinery is large: loaded now, it does not slow the collections between runs.
    for name in traced:
        runs[name] = [_traced(workload, run, functions[name]) for run in runs[name]]
    return Report(
        meter=meter.name,
        torch=torch_version(),
        device=meter.device,
        sweep=tuple(dict(point) for point in workload.sweep),
        runs={name: tuple(of_variant) for name, of_variant in runs.items()},
        agreements=tuple(agreements),
        not_measured=tuple(not_measured),
        timed_on=workload.timed_on,
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
    from finding_tickets.measure.graph_breaks import graph_breaks

    breaks = graph_breaks(function, arguments(workload, point, "cpu", workload.seed))
    metrics = {**run.measurement.metrics, "graph_breaks": breaks}
    return replace(run, measurement=replace(run.measurement, metrics=metrics))
