"""A meter that counts what code tells it, so that the loop is tested without a simulated device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from finding_tickets.claims.laws import Place
from finding_tickets.measure.meter import Meter, VariantRun, arguments, attempt, warm_up
from finding_tickets.workload import Point, Workload


@dataclass
class TallyMeter(Meter):
    """Counts one sync for every element that the function got, at a line of the repository."""

    name: str = "tally"
    device: str = "none"
    most_devices: int = 2
    built: list[list[float]] = field(default_factory=list)

    def cannot_run(self, workload: Workload, point: Point) -> str | None:
        """Points with more than ``most_devices`` are refused."""
        return "too many devices" if workload.devices(point) > self.most_devices else None

    def measure(
        self, workload: Workload, point: Point, function: Callable[..., Any], root: Path
    ) -> VariantRun:
        """Run as every meter does, and remember the data."""
        warm_up(workload, point, function, "cpu")
        inputs = arguments(workload, point, "cpu", workload.seed)
        self.built.append(inputs[0].tolist())
        counted = inputs[0].numel()
        result, error = attempt(workload, function, inputs, root)
        sites: dict[Place, int] = {("fixes/x/found.py", 3, "check", "stream_syncs"): counted}
        metrics = {"syncs": counted, "raised": int(error is not None)}
        return VariantRun(dict(point), metrics, sites, error, result=result)

    def devices(self, number: int, capacity: int | None = None) -> AbstractContextManager[simcuda.Gpu]:
        """There are none."""
        raise NotImplementedError


@pytest.fixture
def meter() -> TallyMeter:
    """A fresh meter."""
    return TallyMeter()


def build(point: Point, device: str, generator: torch.Generator) -> tuple[torch.Tensor]:
    """As many random numbers as the point says."""
    return (torch.rand(point.n, generator=generator).to(device),)


def workload(*sizes: int, **more: Any) -> Workload:
    """A workload of ``build`` over some sizes."""
    return Workload(ticket="X", build=build, sweep=[Point(n=n) for n in sizes], **more)
