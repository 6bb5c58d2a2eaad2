"""Measure a pattern on the simulated device."""

from __future__ import annotations

from typing import Any

import torch
from tests.gpu.pattern import METRICS, Pattern

import simcuda
from simcuda import Measurement


def describe_machine() -> dict[str, str]:
    """Return what the counts depend on."""
    return {"gpu": f"simulated {simcuda.profile.DEFAULT_PROFILE}", "torch": str(torch.__version__)}


def measure(pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs, once it has run with other data."""
    with simcuda.device() as gpu:
        torch.manual_seed(0)
        pattern.build()()
        torch.manual_seed(1)
        work = pattern.build()
        with gpu.measure() as cost:
            kept = work()
        del kept, work
    return {
        "counted": counts(cost),
        "ranges": {metric: list(bounds) for metric, bounds in cost.ranges.items()},
        "approximate": list(cost.approximate),
        "unknown": list(cost.unknown),
        "peak_bytes": cost.peak_bytes,
    }


def counts(cost: Measurement) -> dict[str, int]:
    """Return the metrics of patterns."""
    named = {"waits": cost.syncs, "launches": cost.launches}
    return {metric: named[metric] if metric in named else getattr(cost, metric) for metric in METRICS}
