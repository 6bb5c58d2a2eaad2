"""Measure a pattern on a real GPU by the meter that is tested, ``simcuda.real``."""

from __future__ import annotations

import gc
from typing import Any

from tests.gpu.pattern import Pattern, counts_of, prepare

from simcuda.measurement import METRICS
from simcuda.real import environment, real_device


def describe_machine() -> dict[str, str]:
    """Return what the counts depend on; ``simcuda.real`` says why where it cannot count."""
    return dict(vars(environment()))


def measure(pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs, once it has run with other data."""
    work = prepare(pattern)
    gc.collect()
    with real_device() as gpu, gpu.measure() as cost:
        kept = work()
    del kept
    others = {metric: getattr(cost, metric) for metric in METRICS if metric not in cost.not_counted}
    return {"counted": counts_of(cost), "metrics": others}
