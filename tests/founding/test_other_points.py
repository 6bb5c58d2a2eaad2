"""The laws of a founding ticket do not depend on which points its sweep has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.founding.conftest import ROOT

from finding_tickets.measure.meter import SimulatedMeter
from finding_tickets.measure.run import run
from finding_tickets.workload import Workload

# Parameters, gradients, elements of the largest, devices.
POINTS = [(0, 0, 0, 0), (2, 2, 77, 1), (3, 3, 901, 1), (8, 8, 350, 1), (13, 2, 5000, 1), (21, 9, 64, 1)]
POINTS += [(30, 30, 200, 2), (31, 0, 40, 3), (17, 5, 2048, 1), (44, 44, 10, 1), (26, 1, 1500, 1)]


@pytest.mark.slow
def test_other_points_give_the_same_laws(
    workload: Callable[[str], Workload], variant: Callable[[str, str], Callable[..., Any]]
) -> None:
    """Waits of the first founding ticket, as found and as fixed."""
    stated = workload("b7_pt_02")
    point = stated.build.__globals__["point"]
    sweep = [point(params, grads, largest, devices=devices) for params, grads, largest, devices in POINTS]
    functions = {name: variant("b7_pt_02", name) for name in ("found", "fix")}
    measured = run(replace(stated, sweep=sweep), functions, SimulatedMeter(), ROOT).to_json()["variants"]
    # A check of a weight waits for NaN and for Inf, and so does one of a gradient: 2*params + 2*grads.
    assert "2*params + 2*grads" == measured["found"]["laws"]["syncs"]
    assert "devices" == measured["fix"]["laws"]["syncs"]
