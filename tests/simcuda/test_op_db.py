"""PyTorch's samples of every operator do as on the CPU, apart from what docs/simcuda-ops.md lists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.simcuda.op_db_sweep import operations_that_agree

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/simcuda-ops.md").read_text(encoding="utf-8")
EVERY = 1 if "EVERY_OPERATOR" in os.environ else 6
"""Of how many operators one is run, beside all that the page lists; with ``EVERY_OPERATOR=1`` all are."""
NAME = re.compile(r"`([^`]+)`")

Outcomes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """What became of each operator's samples, by its name."""
    further = {*listed("Other results"), *listed("Other operations in the backward pass")}
    further |= {name for cells in rows("No results") for name in cells[0]}
    further |= set.union(*listed("Unknown operations").values())
    command = [sys.executable, "-m", "tests.simcuda.op_db_sweep", str(EVERY), *sorted(further)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-2000:]
    found: Outcomes = json.loads(done.stdout)
    return found


def rows(heading: str) -> list[list[set[str]]]:
    """The names in each cell of the table below a heading of the page."""
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return [[set(NAME.findall(cell)) for cell in line.strip("| ").split(" | ")] for line in lines]


def listed(heading: str) -> dict[str, set[str]]:
    """The names in the second column by each name in the first."""
    return {name: cells[1] for cells in rows(heading) for name in cells[0]}


def found_in(outcomes: Outcomes, what: str) -> dict[str, set[str]]:
    """What was found of a kind, by operator."""
    return {name: set(outcome[what]) for name, outcome in outcomes.items() if outcome[what]}


def test_all_but_six_operators_do_as_on_the_cpu(outcomes: Outcomes) -> None:
    """PyTorch 2.13 has 699 operators with samples for the CPU; 2.14, which brings ``linalg.polar``, 700."""
    same = [name for name, outcome in outcomes.items() if not outcome["differences"]]
    assert len(outcomes) >= (699 + hasattr(torch.linalg, "polar")) // EVERY
    assert len(same) >= len(outcomes) - 6


def test_every_operator_that_does_otherwise_is_listed(outcomes: Outcomes) -> None:
    """With what it does, and no operator that does as on the CPU."""
    assert listed("Other results") == found_in(outcomes, "differences")


def test_every_operator_that_the_cpu_refuses_is_listed(outcomes: Outcomes) -> None:
    """These raise the same error on both, so there is no value to compare."""
    assert {name for cells in rows("No results") for name in cells[0]} == set(found_in(outcomes, "raised"))


def test_gradients_are_those_of_the_cpu(outcomes: Outcomes) -> None:
    """Every gradient of more than 500 operators has the CPU's values, and lies on the device."""
    assert sum(outcome["differentiated"] > 0 for outcome in outcomes.values()) > 500 // EVERY
    assert set(found_in(outcomes, "gradients")) <= set(listed("Other results"))


def test_backward_passes_issue_the_operations_that_they_issue_without_the_simulation(
    outcomes: Outcomes,
) -> None:
    """By PyTorch's profiler on the host; those that are listed issue exactly what is listed."""
    assert listed("Other operations in the backward pass") == found_in(outcomes, "issued")


def test_every_unknown_operation_is_listed(outcomes: Outcomes) -> None:
    """With the operators that issue it, and no operation that is known."""
    unknown: dict[str, set[str]] = {}
    for name, operations in found_in(outcomes, "unknown").items():
        for operation in operations:
            unknown.setdefault(operation, set()).add(name)
    assert listed("Unknown operations") == unknown


def test_tested_operations_are_those_that_the_package_lists(outcomes: Outcomes) -> None:
    """``simcuda/tested.json`` has all that operators run which agree with the CPU, and nothing else."""
    listed = json.loads((ROOT / "src/simcuda/tested.json").read_text(encoding="utf-8"))
    if not torch.__version__.startswith(listed["torch"]):
        pytest.skip("the file is of the torch by which it was made")
    found = set(operations_that_agree(outcomes)["operations"])
    assert found <= set(listed["operations"])
    assert EVERY > 1 or found == set(listed["operations"])


def test_nothing_is_left_on_the_device(outcomes: Outcomes) -> None:
    """Once the arguments, results and gradients of a sample are dropped, live bytes are what they were."""
    assert {} == {name: outcome["leaked"] for name, outcome in outcomes.items() if outcome["leaked"]}
