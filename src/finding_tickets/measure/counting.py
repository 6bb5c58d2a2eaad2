"""Count one run of a variant on a CUDA device, simulated or real: the same steps on both."""

from __future__ import annotations

from pathlib import Path

import simcuda
from finding_tickets.measure.compare import to_host
from finding_tickets.measure.measurement import COUNTS, Measurement, Site
from finding_tickets.measure.patches import unpatched
from finding_tickets.measure.report import CannotMeasureError
from finding_tickets.measure.trial import Function, Trial, arguments, attempt, warm_up
from finding_tickets.workload import Point, Workload
from simcuda.ledger import ChangedCountsError

DEVICE = "cuda"


def count(gpu: simcuda.Gpu, workload: Workload, point: Point, function: Function, root: Path) -> Trial:
    """Count one run of ``function`` on fresh data, after a run on other data."""
    with unpatched():
        warm_up(workload, point, function, DEVICE)
        inputs = arguments(workload, point, DEVICE, workload.seed)
        before = gpu.live_bytes()
        try:
            with gpu.measure() as counted:
                result, error = attempt(workload, function, inputs, root)
        except ChangedCountsError as changed:
            raise CannotMeasureError(str(changed)) from None
        kept = to_host(result)
        del result
        retained = gpu.live_bytes() - before
    return Trial(measurement_of(counted, retained, raised=error is not None), kept, error)


def measurement_of(counted: simcuda.Measurement, retained: int, *, raised: bool) -> Measurement:
    """What was counted, and ``retained`` bytes, without the metrics that the device does not tell."""
    missing = {*counted.not_counted, "retained_bytes"}
    metrics = {name: getattr(counted, name) for name in COUNTS if name not in missing}
    sites = (Site(site.file, site.line, site.function, site.what, site.count) for site in counted.sites)
    return Measurement(
        metrics={**metrics, "retained_bytes": retained, "raised": int(raised)},
        sites=tuple(sites),
        unknown=tuple(counted.unknown),
        approximate=tuple(counted.approximate),
    )
