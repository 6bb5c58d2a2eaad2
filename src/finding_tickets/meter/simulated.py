"""The meter that needs no GPU: counts on the simulated CUDA device."""

from __future__ import annotations

from pathlib import Path

import simcuda
from finding_tickets.meter.compare import to_host
from finding_tickets.meter.measurement import COUNTS, Measurement, Site
from finding_tickets.meter.patches import unpatched
from finding_tickets.meter.report import SIMULATED_DEVICE
from finding_tickets.meter.trial import Function, Trial, arguments, attempt, steady_state, warm_up
from finding_tickets.workload import Point, Workload

DEVICE = "cuda"


class SimulatedMeter:
    """Runs every variant at every point on a device of its own, with the memory the workload asks for."""

    name = "simulated"

    def __init__(self, profile: str = SIMULATED_DEVICE) -> None:
        self.device = profile

    def cannot_run(self, workload: Workload, point: Point) -> str | None:  # noqa: ARG002 - Meter's signature
        """Nothing stands in the way: there are as many devices and as much memory as a point needs."""
        return None

    def measure(self, workload: Workload, point: Point, function: Function, root: Path) -> Trial:
        """Count one run of ``function`` on fresh data."""
        count, capacity = max(1, workload.devices(point)), workload.memory(point)
        gpus = simcuda.device(count, profile=self.device, capacity=capacity)
        with steady_state(), gpus as gpu, unpatched():
            warm_up(workload, point, function, DEVICE)
            inputs = arguments(workload, point, DEVICE, workload.seed)
            before = gpu.live_bytes()
            with gpu.measure() as counted:
                result, error = attempt(workload, function, inputs, root)
            kept = to_host(result)
            del result
            retained = gpu.live_bytes() - before
        return Trial(_measurement(counted, retained, raised=error is not None), kept, error)


def _measurement(counted: simcuda.Measurement, retained: int, *, raised: bool) -> Measurement:
    metrics = {name: getattr(counted, name) for name in COUNTS if name != "retained_bytes"}
    sites = (Site(site.file, site.line, site.function, site.what, site.count) for site in counted.sites)
    return Measurement(
        metrics={**metrics, "retained_bytes": retained, "raised": int(raised)},
        sites=tuple(sites),
        unknown=tuple(counted.unknown),
        approximate=tuple(counted.approximate),
    )
