"""Disagreements that a difference of torch versions explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CASE = "case"
"""Stands in the place of a metric where a case is not the same any more."""

ENDING = "ending"
"""Stands in the place of a metric where a case did not end the same way."""


@dataclass(frozen=True)
class Disagreement:
    """One thing in which a recording and the simulation differ.

    Attributes:
        case: The id of the case.
        metric: The metric, or ``CASE`` or ``ENDING``.
        recorded: What the recording says.
        simulated: What the simulation says.
        unsure: Operations of the case that the simulation says it does not know, or only models.
    """

    case: str
    metric: str
    recorded: str
    simulated: str
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """A way in which two versions of torch differ.

    Attributes:
        reason: What differs.
        explains: Whether it explains a disagreement between a recording and the simulation, given the
            version of torch that each ran with, such as ``(2, 13)``.
    """

    reason: str
    explains: Callable[[Disagreement, tuple[int, ...], tuple[int, ...]], bool]


DIFFERENCES = (
    Difference(
        "the samples of operators are not the same in every version",
        lambda each, recorded, simulated: (
            recorded != simulated and each.metric == CASE and each.case.startswith("op/")
        ),
    ),
    Difference(
        "an optimizer, or a way of running it, is not there in every version",
        lambda each, recorded, simulated: (
            recorded != simulated and each.metric in (CASE, ENDING) and each.case.startswith("optimizer/")
        ),
    ),
)
"""What is known; a row that speaks of counts needs a source, as a rule does."""


def explanations(recorded: str, simulated: str) -> Callable[[Disagreement], str | None]:
    """What explains a disagreement between runs with two versions of torch, such as ``2.13.0``."""
    versions = _minor(recorded), _minor(simulated)

    def explanation(disagreement: Disagreement) -> str | None:
        return next((known.reason for known in DIFFERENCES if known.explains(disagreement, *versions)), None)

    return explanation


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
