"""Which exceptions a ticket accounts for: at each point, those that one of its claims is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from finding_tickets.claims.expressions import Condition, ExpressionError, Growth, satisfied
from finding_tickets.claims.fitting import ENDINGS
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.errors import BadDataError
from finding_tickets.measure.report import At, Run
from finding_tickets.model.remediation import Claim


def unexplained(runs: Iterable[Run], claims: Sequence[Claim]) -> Run | None:
    """The first run that raised at a point where no claim in ``claims`` decides about that.

    Raises:
        BadDataError: A condition of a claim has no value at a point.
    """
    endings = [claim for claim in claims if claim.metric in ENDINGS]
    return next((run for run in runs if run.error and not any(_decides(one, run) for one in endings)), None)


def _decides(claim: Claim, run: Run) -> bool:
    """Whether a claim speaks of the exception that a run ended with: it allows it or is false.

    A growth class does neither, and a claim about ``ooms`` speaks of running out of memory alone.
    """
    if claim.metric == "ooms" and not run.measurement.metrics.get("ooms"):
        return False
    with located(claim):
        return not isinstance(parse_condition(claim.value), Growth) and meets(run.at, conditions_of(claim))


def conditions_of(claim: Claim) -> dict[str, Condition]:
    """The conditions under ``at``, by variable."""
    return {name: parse_condition(text) for name, text in claim.at.items()}


def meets(at: At, conditions: Mapping[str, Condition]) -> bool:
    """Whether a point satisfies every condition; a growth class selects no points."""
    return all(
        not isinstance(condition, Growth) and satisfied(condition, at[name], at)
        for name, condition in conditions.items()
    )


@contextmanager
def located(claim: Claim) -> Iterator[None]:
    """An error in an expression within becomes one of the ticket, with the claim and its line."""
    try:
        yield
    except ExpressionError as error:
        raise BadDataError(f"claim {claim.id}: {error.message}", line=claim.line, hint=error.hint) from None
