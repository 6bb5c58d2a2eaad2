"""Measure one ticket: every variant at every point of the sweep. Refuse costs that differ from run to run.

A verifier that is run on its own, with torch alone, prints the laws of the variants beside it. Nothing is
isolated then and no claim is checked: that is what ``tickets verify`` does.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from finding_tickets.claims.check import ONCE, at_text, named_at
from finding_tickets.claims.laws import fitted
from finding_tickets.claims.metrics import METRICS
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.ground.files import fixes_folder
from finding_tickets.measure.loading import check_sweep, load_function, load_workload
from finding_tickets.measure.meter import (
    DEVICE,
    Function,
    Meter,
    VariantRun,
    arguments,
    choose,
    operation_costs,
    steady_state,
    torch_version,
    warm_up,
)
from finding_tickets.measure.results import (
    ARGUMENTS,
    find_lazy,
    save_result,
)
from finding_tickets.measure.state import unpatched
from finding_tickets.measure.tasks import (
    KEPT,
    METERS,
    VARYING,
    At,
    CannotMeasureError,
    Job,
    belongs_to,
    find_variants,
    own_folder,
)
from finding_tickets.measure.workloads import Point, Workload
from simcuda.costs.declared import MARK, declarations
from simcuda.ledger import attributing_to, noting_operations
from simcuda.measurement import table
from simcuda.profile import GPU_NAME

# The name that the simulated GPU has when further points are measured: code must not depend on it.
OTHER_GPU = "NVIDIA H100 80GB HBM3"

# Replaces the functions of variants once they are loaded: an audit puts cheats in their place.
Replace = Callable[[Workload, Mapping[str, Function]], Mapping[str, Function]]


@dataclass(frozen=True)
class JobReport:
    """All runs of one ticket on one meter.

    ``not_measured`` is as JSON carries it. ``compares`` tells whether the workload compares results in its
    own way.
    """

    meter: str
    device: str
    sweep: tuple[At, ...]
    runs: dict[str, list[VariantRun]]
    not_measured: tuple[dict[str, Any], ...] = ()
    compares: bool = False
    further: tuple[At, ...] = ()

    def to_json(self, *, with_laws: bool = True) -> dict[str, Any]:
        """Return the fields of a ``MeasuredTicket``: samples, and the laws that fit them."""
        rest = {name: value for name, value in vars(self).items() if name != "runs"}
        # Laws are fitted in the worker, because several workers run at once.
        variants = {
            name: {
                **fitted(runs, with_laws=with_laws),
                "operations": operation_costs(runs[-1]) if runs else (),
            }
            for name, runs in self.runs.items()
        }
        return {**rest, "torch": torch_version(), "variants": variants}


def measure(job: Job, replace_functions: Replace | None = None) -> dict[str, Any]:
    """Measure a job; return the fields of a ``MeasuredTicket``.

    Raises:
        CannotMeasureError: A variant or the verifier cannot be used. Importing them may raise other errors.
    """
    root, code = Path(job.root), Path(job.code)
    # One thread: several tickets are measured at once, and sums then have the same order in every run.
    torch.set_num_threads(1)
    meter = choose(job.meter)
    if job.further:
        os.environ[GPU_NAME] = OTHER_GPU
    # As on a GPU, a module may ask for the device when it is imported.
    with meter.devices(1):
        stated = workload = load_workload(job.verifier, root, code)
        allowed = declarations()
        with _naming(job.variant), unpatched():
            functions: dict[str, Function] = {
                job.variant: load_function(job.function, code)
            }
    if job.seed is not None:
        workload = replace(stated, seed=job.seed)
    further: list[Point] = []
    if job.further:
        further = further_points(workload, meter, edges=job.further == "edges")
        workload = replace(workload, sweep=[*stated.sweep, *further])
    measured = replace_functions(stated, functions) if replace_functions else functions
    # Problems of a branch are told at its own lines, not at those of a library that it calls.
    own_lines = (
        attributing_to(lambda file: belongs_to(code, Path(file)))
        if job.further
        else nullcontext()
    )
    with noting_operations(job.operations), own_lines:
        report = run(
            workload,
            measured,
            meter,
            code,
            traced=job.graph_breaks,
            keep=_save if job.keeps else None,
        )
    check_repeated(report, workload, measured, meter, code)
    with _naming(job.variant):
        check_declared(report.runs[job.variant], allowed)
    report = replace(report, further=tuple(dict(point) for point in further))
    # Nobody is shown the laws of a cheat.
    return report.to_json(with_laws=replace_functions is None)


def run(
    workload: Workload,
    functions: Mapping[str, Function],
    meter: Meter,
    root: Path,
    *,
    traced: bool = False,
    keep: Callable[[int, VariantRun], None] | None = None,
) -> JobReport:
    """Measure ``functions``, by the names of their variants; paths are reported relative to ``root``.

    Where they are ``traced``, graph breaks are counted too. ``keep`` gets the place of each point and the run
    there, whose results are let go after that. A variant that leaves its work undone cannot be measured.
    """
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    runs: dict[str, list[VariantRun]] = {name: [] for name in functions}
    not_measured = []
    for place, point in enumerate(workload.sweep):
        if why := meter.cannot_run(workload, point):
            not_measured.append({"at": dict(point), "why": why})
            continue
        for name, function in functions.items():
            with _naming(name, point):
                done = meter.measure(workload, point, function, root)
                if kind := find_lazy(done.result):
                    raise CannotMeasureError(
                        f"returned {kind}, which has not run; give the workload a read that consumes it"
                    )
                if keep and not done.error:
                    keep(place, done)
            runs[name].append(replace(done, result=None, arguments={}))
    # The compiler is large: loaded only now, it does not slow the garbage collections between runs.
    for name, function in functions.items() if traced else ():
        for place, each in enumerate(runs[name]):
            point = Point(**each.at)
            # Only a run that did not raise can be traced, and only on one device: it is traced on the CPU.
            if each.error is None and workload.devices(point) <= 1:
                breaks = graph_breaks(
                    function, arguments(workload, point, "cpu", workload.seed)
                )
                runs[name][place] = replace(
                    each, metrics={**each.metrics, "graph_breaks": breaks}
                )
    return JobReport(
        meter=meter.name,
        device=meter.device,
        sweep=tuple(dict(point) for point in workload.sweep),
        runs=runs,
        not_measured=tuple(not_measured),
        compares=workload.same is not None,
    )


def _save(place: int, done: VariantRun) -> None:
    """Save what a variant returned at a point, and how it left its arguments."""
    save_result(own_folder() / KEPT / str(place), done.result)
    save_result(own_folder() / KEPT / f"{place}{ARGUMENTS}", done.arguments)


def further_points(workload: Workload, meter: Meter, *, edges: bool) -> list[Point]:
    """Return points that no file states, if their arguments can be built.

    Of each variable these are a size beyond the sweep and, as ``edges``, 0 and 1. They follow from the seed,
    so that they are the same for every variant.
    """
    draw = random.Random(workload.seed)  # noqa: S311 - sizes, not secrets
    points = sorted(workload.sweep, key=lambda point: tuple(point.values()))
    smallest, largest = dict(points[0]), dict(points[-1])
    found = []
    for name in smallest:
        values = [point[name] for point in points]
        beyond = max(values) + 1 + draw.randrange(max(values) // 2 + 1)
        candidates = [{**largest, name: beyond}]
        candidates += [
            {**smallest, name: edge} for edge in (0, 1) if edges and edge not in values
        ]
        for at in candidates:
            point = Point(**at)
            try:
                with steady_state(), meter.devices_for(workload, point):
                    arguments(workload, point, DEVICE, workload.seed)
            except Exception:  # noqa: S112 - any error
                # The workload has no such size.
                continue
            found.append(point)
    return found


@contextmanager
def _naming(variant: str, point: Point | None = None) -> Iterator[None]:
    """Begin the message of a ``CannotMeasureError`` with the name of the variant."""
    try:
        yield
    except CannotMeasureError as error:
        raise CannotMeasureError(
            f"{named_at(variant, point or ONCE)}: {error}"
        ) from None


def check_declared(runs: Iterable[VariantRun], allowed: Collection[str]) -> None:
    """Raise ``CannotMeasureError`` if a run counts an operation as the measured code itself declares it."""
    if own := {
        each
        for run in runs
        for each in run.approximate
        if MARK in each and each not in allowed
    }:
        raise CannotMeasureError(
            f"{min(own)} by the code that is measured; a verifier may declare it"
        )


def check_repeated(
    report: JobReport,
    workload: Workload,
    functions: Mapping[str, Function],
    meter: Meter,
    root: Path,
) -> None:
    """Raise ``CannotMeasureError`` if a variant costs something else when it runs once more.

    Each variant runs at the first point that it was measured at. On a real GPU nothing is done: its libraries
    may choose other kernels from run to run. Every measured run follows one warm-up; this one follows two, so
    that work done at every other call is noticed.
    """
    if meter.name != "simulated":
        return
    for name, function in functions.items():
        for before in report.runs[name][:1]:
            point = Point(**before.at)
            with steady_state(), meter.devices_for(workload, point):
                warm_up(workload, point, function, DEVICE)
            again = meter.measure(workload, point, function, root)
            if difference := before.difference(again):
                what = f"{named_at(name, point)}: {VARYING}: {difference}"
                raise CannotMeasureError(what)


def graph_breaks(function: Function, inputs: tuple[Any, ...]) -> int:
    """Count the places at which torch.compile breaks ``function`` into graphs, with arguments on the CPU.

    If a break inside a loop makes the compiler give up a whole function, ``explain`` reports -1 breaks, or
    none if another function called it; only the compiler's own counters know. The compiler looks no further
    there, so that a function that was given up has at least 1 break.
    """
    # Loading the compiler takes longer than most measurements, and few need it.
    import torch._dynamo as dynamo
    from torch._dynamo.utils import counters
    from torch.distributions import Distribution

    dynamo.reset()
    counters.clear()
    checked = Distribution._validate_args  # noqa: SLF001 - there is a setter, and no getter
    try:
        explained = dynamo.explain(function)(*inputs)
    finally:
        # Tracing turns off the checks of distributions for the whole process; each check waits for the GPU.
        Distribution.set_default_validate_args(checked)
    counted = sum(counters["graph_break"].values())
    given_up = bool(counters["unimplemented"])
    return max(int(explained.graph_break_count), counted, int(given_up))


def measure_beside(workload: Workload) -> None:
    """Measure the variants in the folder of the running verifier, and print their laws."""
    import argparse

    parser = argparse.ArgumentParser(
        description=f"Measure the variants of {workload.ticket}."
    )
    parser.add_argument(
        "--meter", choices=METERS, default="simulated", help="what counts during a run"
    )
    meter = parser.parse_args().meter
    try:
        verifier = Path(sys.argv[0]).resolve()
        root = verifier.parent.parent
        check_sweep(workload, verifier.name)
        folder = fixes_folder(workload.ticket)
        variants = find_variants(folder, root)
        if not variants:
            raise CannotMeasureError(f"{folder}: holds no variant of {workload.ticket}")
        functions = {name: load_function(path, root) for name, path in variants.items()}
        chosen = choose(meter)
        report = run(workload, functions, chosen, root)
        check_repeated(report, workload, functions, chosen, root)
    except (TicketsError, CannotMeasureError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(
            error.exit_code
            if isinstance(error, TicketsError)
            else ExitCode.INCONCLUSIVE
        )
    print("\n".join(_laws(workload.ticket, report)))


def _laws(ticket: str, report: JobReport) -> Iterator[str]:
    """The report as lines: a table of laws with a column for each variant, then the sites of each."""
    measured = report.to_json()
    variants = measured["variants"]
    heading = f"{ticket} on {report.meter} ({report.device}), torch {measured['torch']}"
    yield f"{heading}, {len(report.sweep)} points"
    yield from (
        f"not measured: {at_text(each['at'])}: {each['why']}"
        for each in report.not_measured
    )
    yield ""
    # A law or what stands in for it, in the order of the metrics.
    fits = [
        {**of_variant["growth"], **of_variant["laws"]}
        for of_variant in variants.values()
    ]
    rows = [
        [metric, *(of_variant.get(metric, "-") for of_variant in fits)]
        for metric in METRICS
    ]
    yield from table(
        [["metric", *variants], *(row for row in rows if set(row[1:]) - {"0", "-"})]
    )
    for name, runs in report.runs.items():
        for one in runs:
            if one.error:
                yield f"{name} at {at_text(one.at)}: {one.error}"
            if one.unknown:
                yield f"{name} at {at_text(one.at)}: unknown operations {', '.join(one.unknown)}"
        sites = [
            (
                f"{s['file']}:{s['line']}",
                s["function"],
                s["what"],
                s["law"] or s["growth"],
            )
            for s in variants[name]["sites"]
        ]
        yield from ["", f"{name}:", *(f"  {line}" for line in table(sites))]
