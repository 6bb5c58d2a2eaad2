"""A variant whose cost changes from run to run of the same work is not measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import workload

from finding_tickets.measure.meter import SimulatedMeter
from finding_tickets.measure.run import check_repeated, run
from finding_tickets.measure.tasks import CannotMeasureError

ROOT = Path(__file__).parents[2]


def check(function: Callable[..., Any]) -> None:
    """Measure a function at two points, then look whether it costs the same again."""
    jobs, meter, functions = workload(3, 4), SimulatedMeter(), {"found": function}
    report = run(jobs, functions, meter, ROOT)
    check_repeated(report, jobs, functions, meter, ROOT)


def every(period: int) -> Callable[[torch.Tensor], Any]:
    """A function that waits for the device at every so many calls."""
    calls = itertools.count(1)

    def wait_at_times(values: torch.Tensor) -> Any:
        return values.sum().item() if next(calls) % period == 0 else values.sum()

    return wait_at_times


@pytest.mark.parametrize(
    ("period", "costs"),
    [
        # Two points of two calls each, warm-up and run, then two warm-ups and a run: call 2 is measured and
        # call 7 compared with it.
        pytest.param(2, "syncs 1, then 0", id="at every other call"),
        pytest.param(7, "syncs 0, then 1", id="at every seventh call"),
    ],
)
def test_costs_that_change(period: int, costs: str) -> None:
    """The reason names the variant, the point, the metric, both costs and the line."""
    line = "tests/measure/test_repeated.py:33"
    expected = f"^found at n=3: costs differ from run to run of the same work: {costs} at {line}$"
    with pytest.raises(CannotMeasureError, match=expected):
        check(every(period))


def test_costs_that_stay() -> None:
    """What waits at each call, fails at each call, or works once in its warm-up costs the same again."""
    tables: list[float] = []

    def once(values: torch.Tensor) -> None:
        if not tables:
            tables.append(values.sum().item())

    def fail(values: torch.Tensor) -> None:
        raise RuntimeError(f"{values.numel()} are too many")

    for function in (every(1), once, fail):
        check(function)
    assert 1 == len(tables)
