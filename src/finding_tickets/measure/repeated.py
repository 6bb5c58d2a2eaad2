"""Whether a variant costs the same each time: one run more, of work that has been measured already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from finding_tickets.measure.counting import DEVICE
from finding_tickets.measure.report import CannotMeasureError, Report, Run, at_text
from finding_tickets.measure.trial import Function, Meter, Trial, steady_state, warm_up
from finding_tickets.workload import Point, Workload


def check_repeated(
    report: Report, workload: Workload, functions: Mapping[str, Function], meter: Meter, root: Path
) -> None:
    """Run each variant once more at the first point that it was measured at, on the simulated device.

    On a real GPU nothing is done: there libraries may choose other kernels from run to run. Every measured
    run is the second one of a pair, after its warm-up. One warm-up more makes this one the first of a pair,
    so that work done at every other call is noticed, too.

    Raises:
        CannotMeasureError: A variant costs something else than before.
    """
    if meter.name != "simulated":
        return
    for name, function in functions.items():
        for before in report.runs[name][:1]:
            point = Point(**before.at)
            with steady_state(), meter.devices(max(1, workload.devices(point)), workload.memory(point)):
                warm_up(workload, point, function, DEVICE)
            again = meter.measure(workload, point, function, root)
            if what := _changed(before, again):
                where = f"{name} at {at_text(point)}"
                raise CannotMeasureError(f"{where}: costs differ from run to run of the same work: {what}")


def _changed(before: Run, again: Trial) -> str | None:
    """The first metric that is another one now; the run before may have metrics that were traced besides."""
    counted = again.measurement.metrics
    for metric, value in counted.items():
        if value != before.measurement.metrics.get(metric):
            return f"{metric} {before.measurement.metrics.get(metric)}, then {value}"
    return None
