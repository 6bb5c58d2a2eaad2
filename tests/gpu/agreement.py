"""Where the simulation and recordings of GPUs disagree: ``python -m tests.gpu.agreement`` prints a table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.gpu.by_simulation import METRICS_OF, measure_on, shared_device
from tests.gpu.known import KNOWN, metrics_by_name
from tests.gpu.pattern import METRICS, Pattern, load
from tests.gpu.run import read_recording

import simcuda

HERE = Path(__file__).parent
RECORDINGS = [read_recording(HERE / f"{gpu}-cuda13-torch2.11.json") for gpu in ("h100", "h200")]
"""What GPUs counted; a pattern that several have is taken from the last."""

Difference = tuple[str, int, int]
"""A metric, what the simulation counts, and what is right."""


def wanted(pattern: Pattern) -> dict[str, int]:
    """Return what a pattern costs under the torch that is installed: as derived, or else as recorded."""
    numbers: dict[str, int] = {}
    for recording in RECORDINGS:
        numbers |= recorded_numbers(recording, pattern.name)
    return numbers | pattern.expected_on(torch.__version__)


def recorded_numbers(recording: dict[str, Any], name: str) -> dict[str, int]:
    """Return all that a recording says of a pattern: nothing, or a number for each metric."""
    outcome = recording["patterns"].get(name)
    return {metric: outcome["counted"].get(metric, 0) for metric in METRICS} if outcome else {}


def differences(outcome: dict[str, Any], right: dict[str, int]) -> list[Difference]:
    """Return what the simulation counts wrong: another number, and no range that contains the right one."""
    found: list[Difference] = []
    for metric, number in right.items():
        counted = outcome["counted"][metric]
        if counted != number and not is_within_range(outcome["ranges"], metric, number):
            found.append((metric, counted, number))
    return found


def is_within_range(ranges: dict[str, list[int | None]], metric: str, number: int) -> bool:
    """Return whether the simulation gives a range for a metric, and the number lies in it."""
    for name in METRICS_OF.get(metric, (metric,)):
        if name in ranges:
            least, most = ranges[name]
            assert least is not None
            return least <= number and (most is None or number <= most)
    return False


def assert_agreement(gpu: simcuda.SimulatedCuda, name: str) -> None:
    """Assert that the simulation counts a pattern right, but for what ``known.py`` lists."""
    pattern = load()[name]
    if not pattern.runs_on(torch.__version__):
        pytest.skip(f"needs torch {pattern.since}")
    found = differences(measure_on(gpu, pattern), wanted(pattern))
    assert {metric for metric, _, _ in found} == metrics_by_name(KNOWN).get(name, set()), found


WORDS = ("equal", "above 0", "in range", "wrong")


def main() -> None:
    """Print how many numbers are equal, how many of these above 0, in a range that is given, and wrong."""
    tally = Counter[tuple[str, str]]()
    for pattern in load().values():
        outcome, right = measure_on(shared_device(), pattern), wanted(pattern)
        wrong = {metric for metric, _, _ in differences(outcome, right)}
        for metric, number in right.items():
            is_equal = outcome["counted"][metric] == number
            tally[metric, "wrong" if metric in wrong else "equal" if is_equal else "in range"] += 1
            tally[metric, "above 0"] += is_equal and number > 0
    for metric in METRICS:
        print(metric, *(f"{word} {tally[metric, word]}" for word in WORDS))


if __name__ == "__main__":
    main()
