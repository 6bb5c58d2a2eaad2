"""The meter that needs no GPU: counts on the simulated CUDA device."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import simcuda
from finding_tickets.measure.counting import count
from finding_tickets.measure.report import SIMULATED_DEVICE
from finding_tickets.measure.trial import Function, Trial, steady_state
from finding_tickets.workload import Point, Workload


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
        devices, capacity = max(1, workload.devices(point)), workload.memory(point)
        with steady_state(), self.devices(devices, capacity) as gpu:
            return count(gpu, workload, point, function, root)

    def devices(self, number: int, capacity: int | None = None) -> AbstractContextManager[simcuda.Gpu]:
        """Simulated devices, with so many bytes of memory or all that their profile has."""
        return simcuda.device(number, profile=self.device, capacity=capacity)
