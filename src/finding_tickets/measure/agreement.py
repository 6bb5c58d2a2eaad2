"""Whether two variants agree at a point: measured in one process, or each in its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from finding_tickets.measure.compare import difference
from finding_tickets.measure.kept import kept
from finding_tickets.measure.loading import load_workload
from finding_tickets.measure.report import Agreement
from finding_tickets.measure.source import Comparison
from finding_tickets.workload import Point, Workload


class Ended(Protocol):
    """How a run ended: with a result, or with an error in words."""

    @property
    def result(self) -> Any:
        """What it returned, on the host."""

    @property
    def error(self) -> str | None:
        """How it raised."""


@dataclass(frozen=True)
class Recalled:
    """How a run in another process ended."""

    result: Any
    error: str | None


def agreement(
    workload: Workload, point: Point, comparison: Comparison, ended: Mapping[str, Ended]
) -> Agreement:
    """Compare two variants at a point, given how each variant ended there."""
    expected, actual = ended[comparison.target], ended[comparison.variant]
    if expected.error:
        return Agreement(comparison, dict(point), skipped=True)
    if actual.error:
        return Agreement(comparison, dict(point), difference=f"raised {actual.error}")
    found = _difference(workload, comparison, expected.result, actual.result)
    return Agreement(comparison, dict(point), found)


def compare_kept(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare results that other processes have kept, for a process of its own.

    ``payload`` names the verifier as a job does, the ``comparisons``, the ``points`` that were measured by
    their place in the sweep, the ``errors`` of each variant there, and the folder of ``results``.
    """
    workload = load_workload(payload["verifier"], Path(payload["root"]), Path(payload["code"]))
    comparisons = [Comparison(**comparison) for comparison in payload["comparisons"]]
    folder = Path(payload["results"])
    agreements = []
    for place, at in payload["points"]:
        ended = {
            name: Recalled(None if errors[str(place)] else kept(folder, name, place), errors[str(place)])
            for name, errors in payload["errors"].items()
        }
        agreements += [agreement(workload, Point(**at), comparison, ended) for comparison in comparisons]
    return [asdict(found) for found in agreements]


def _difference(workload: Workload, comparison: Comparison, expected: Any, actual: Any) -> str | None:
    """By the workload's own way where it has one and the claim states no tolerance."""
    if workload.same is None or comparison.tolerance is not None:
        return difference(expected, actual, comparison.tolerance)
    found = workload.same(expected, actual)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"same must return None or the difference in words, not {found!r}")
    return found
