"""The loop over points and variants, the same for every meter."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import TallyMeter, workload

from finding_tickets.measure.run import run
from finding_tickets.measure.tasks import CannotMeasureError

ROOT = Path("/repository")


def total(values: torch.Tensor) -> torch.Tensor:
    """A result to compare."""
    return values.sum()


def spoil(values: torch.Tensor) -> torch.Tensor:
    """The same result, with the argument changed on the way."""
    result = values.sum()
    values.zero_()
    return result


def fail(values: torch.Tensor) -> torch.Tensor:
    """No result at the second point."""
    if values.numel() == 2:
        raise RuntimeError("two is too many")
    return values.sum()


def test_every_variant_runs_at_every_point(meter: TallyMeter) -> None:
    """The report has a run for each variant at each point, in the order of the sweep."""
    report = run(workload(1, 2, 4), {"found": total, "fix": total}, meter, ROOT)
    counts = {name: [run.metrics["syncs"] for run in runs] for name, runs in report.runs.items()}
    assert {"found": [1, 2, 4], "fix": [1, 2, 4]} == counts
    assert ({"n": 1}, {"n": 2}, {"n": 4}) == report.sweep


def test_every_variant_gets_equal_and_fresh_data(meter: TallyMeter) -> None:
    """What one variant does to its arguments is not seen by the next one, and the points differ."""
    run(workload(3, 3), {"found": spoil, "fix": total}, meter, ROOT)
    assert meter.built[0] == meter.built[1]


def test_the_warm_up_gets_other_data(meter: TallyMeter) -> None:
    """A variant that remembers its arguments gains nothing: the measured values are new."""
    seen: list[list[float]] = []

    def remember(values: torch.Tensor) -> None:
        seen.append(values.tolist())

    run(workload(3), {"found": remember}, meter, ROOT)
    warm, measured = seen
    assert warm != measured


def test_an_exception_is_data(meter: TallyMeter) -> None:
    """The error is kept with its point, which has no result, and the other points go on."""
    kept = []
    report = run(workload(1, 2, 3), {"fix": fail}, meter, ROOT, keep=lambda place, _: kept.append(place))
    assert [None, "RuntimeError: two is too many", None] == [run.error for run in report.runs["fix"]]
    assert [0, 2] == kept


def test_a_point_that_the_meter_cannot_run_is_listed(meter: TallyMeter) -> None:
    """It stays in the sweep, has no run, and the reason is kept."""
    jobs = workload(1, 3, devices=lambda point: point.n)
    report = run(jobs, {"found": total}, meter, ROOT)
    assert ({"at": {"n": 3}, "why": "too many devices"},) == report.not_measured
    assert [{"n": 1}] == [run.at for run in report.runs["found"]]


@pytest.mark.slow
def test_graph_breaks_are_counted_on_one_device(meter: TallyMeter) -> None:
    """Only variants that are to be traced have the metric, and only where one device is enough."""
    jobs = workload(1, 2, devices=lambda point: point.n)
    for traced, expected in [(False, [None, None]), (True, [0, None])]:
        report = run(jobs, {"fix": total}, meter, ROOT, traced=traced)
        assert expected == [run.metrics.get("graph_breaks") for run in report.runs["fix"]]


async def later(_: torch.Tensor) -> None:
    """Nothing happens until somebody awaits it."""


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda values: (value.item() for value in values), "a generator"),
        (lambda values: {"items": [map(torch.neg, values)]}, "an iterator"),
        (later, "a coroutine"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # that is the point
def test_a_promise_is_no_result(meter: TallyMeter, function: Any, kind: str) -> None:
    """Code that has not run yet would cost nothing; the variant and its point are named."""
    with pytest.raises(CannotMeasureError) as caught:
        run(workload(2), {"found": total, "fix": function}, meter, ROOT)
    hint = "give the workload a read that consumes it"
    assert f"fix at n=2: returned {kind}, which has not run; {hint}" == str(caught.value)
    # The traceback holds the coroutine, whose warning belongs to this test and to no later one.
    del caught
    gc.collect()
