"""Measure a pattern on the simulated device."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import torch
from tests.gpu.pattern import Pattern, counts_of, prepare

import simcuda
from simcuda.ledger import operations_of

METRICS_OF = {"waits": ("syncs", "stream_syncs", "event_syncs", "device_syncs")}
"""By which metrics of the library a metric of patterns is known; any other has the same name."""
OPEN = ExitStack()
"""Holds the device until the process ends."""


def describe_machine() -> dict[str, str]:
    """Return what the counts depend on."""
    return {"gpu": f"simulated {simcuda.profile.DEFAULT_PROFILE}", "torch": str(torch.__version__)}


@cache
def shared_device() -> simcuda.SimulatedCuda:
    """Return the device of this process: to open one for each pattern would double the time."""
    return OPEN.enter_context(simcuda.device())


def measure(pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs, once it has run with other data."""
    return measure_on(shared_device(), pattern)


def measure_on(gpu: simcuda.SimulatedCuda, pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs on a device that is open, once it has run with other data."""
    work = prepare(pattern)
    with gpu.measure() as cost:
        kept = work()
    del kept
    return {
        "counted": counts_of(cost),
        "ranges": {metric: list(bounds) for metric, bounds in cost.ranges.items()},
        "approximate": list(cost.approximate),
        "unknown": list(cost.unknown),
        "peak_bytes": cost.peak_bytes,
        # Empty unless they are noted.
        "operations": operations_of(cost),
    }
