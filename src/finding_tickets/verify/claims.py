"""Check the claims of a ticket at every point at which they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.errors import BadDataError
from finding_tickets.meter.report import Agreement, At, Report, Run
from finding_tickets.model.remediation import Claim
from finding_tickets.model.verification import ClaimResult
from finding_tickets.verify.expressions import (
    Condition,
    ExpressionError,
    Growth,
    check_variables,
    satisfied,
)
from finding_tickets.verify.fitting import ENDINGS, fit
from finding_tickets.verify.grammar import parse_condition
from finding_tickets.verify.growth import bounded, undominated
from finding_tickets.verify.metrics import SAME_RESULT
from finding_tickets.verify.plan import comparison_of


@dataclass(frozen=True)
class Checked:
    """What came of a claim: whether it holds, what was measured, and where it fails."""

    holds: bool | None
    measured: str
    counterexamples: tuple[str, ...] = ()


def check(claims: Sequence[Claim], report: Report) -> tuple[ClaimResult, ...]:
    """Every claim beside what was measured.

    Raises:
        BadDataError: A claim names a variable that the sweep does not have, or has no value at a point.
    """
    troubles = {name: trouble(name, report, claims) for name in report.runs}
    return tuple(_result(claim, report, troubles) for claim in claims)


def trouble(variant: str, report: Report, claims: Sequence[Claim]) -> str | None:
    """Why the runs of a variant decide nothing; None where they do.

    No run took place, one raised although no claim about the variant says that it may, or one met an
    operation whose cost is unknown.
    """
    runs = report.runs.get(variant, ())
    if not runs:
        return f"{variant} was not run"
    may_raise = any(claim.variant == variant and claim.metric in ENDINGS for claim in claims)
    failed = next((run for run in runs if run.error and not may_raise), None)
    if failed:
        return f"{variant} at {at_text(failed.at)}: {failed.error}"
    unknown = sorted({name for run in runs for name in run.measurement.unknown})
    return f"{variant} uses operations of unknown cost: {', '.join(unknown)}" if unknown else None


def at_text(at: At) -> str:
    """A point in words: ``params=4, largest=1024``."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


def unchecked(claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    """Every claim as one that nothing was measured for."""
    return tuple(_beside(claim, Checked(None, "nothing")) for claim in claims)


def _result(claim: Claim, report: Report, troubles: Mapping[str, str | None]) -> ClaimResult:
    try:
        return _beside(claim, _check(claim, report, troubles.get(claim.variant)))
    except ExpressionError as error:
        raise BadDataError(f"claim {claim.id}: {error.message}", line=claim.line, hint=error.hint) from None


def _beside(claim: Claim, checked: Checked) -> ClaimResult:
    where = ", ".join(f"{name} {condition}" for name, condition in claim.at.items())
    return ClaimResult(
        id=claim.id,
        variant=claim.variant,
        metric=claim.metric,
        claimed=f"{claim.value} where {where}" if where else claim.value,
        measured=checked.measured,
        holds=checked.holds,
        expect=claim.expect,
        why=claim.why,
        counterexamples=checked.counterexamples,
    )


def _check(claim: Claim, report: Report, why_not: str | None) -> Checked:
    conditions = {name: parse_condition(text) for name, text in claim.at.items()}
    check_names(claim, report.sweep[0])
    if why_not:
        return Checked(None, why_not)
    if claim.metric == SAME_RESULT:
        made = [made for made in report.agreements if made.comparison == comparison_of(claim)]
        return _agreement([made for made in made if _meets(made.at, conditions)])
    runs = [run for run in report.runs[claim.variant] if _counts(run, claim) and _meets(run.at, conditions)]
    if not runs:
        return Checked(None, "not measured at any point of the claim")
    values = [run.measurement.metrics[claim.metric] for run in runs]
    return _compare(parse_condition(claim.value), [run.at for run in runs], values)


def check_names(claim: Claim, variables: Mapping[str, int]) -> None:
    """Raise ``ExpressionError`` for the first variable of a claim that the sweep does not have."""
    texts = (
        list(claim.at.values())
        if claim.metric == SAME_RESULT
        else [claim.value, *claim.at, *claim.at.values()]
    )
    for text in texts:
        check_variables(parse_condition(text), variables)


def _meets(at: At, conditions: Mapping[str, Condition]) -> bool:
    return all(
        not isinstance(condition, Growth) and satisfied(condition, at[name], at)
        for name, condition in conditions.items()
    )


def _counts(run: Run, claim: Claim) -> bool:
    """Whether a run takes part: what was counted up to an exception is no cost of the whole."""
    return claim.metric in run.measurement.metrics and (run.error is None or claim.metric in ENDINGS)


def _compare(condition: Condition, points: Sequence[At], values: Sequence[int]) -> Checked:
    found = fit(points, values)
    span = f"{min(values)}..{max(values)}" if min(values) < max(values) else str(values[0])
    measured = found.law or ", ".join(filter(None, (found.growth, span)))
    if isinstance(condition, Growth):
        beyond = undominated(found.law, condition.expression, points) if found.law else []
        excess = f", in which {' and '.join(beyond)} is not bounded by the class" if beyond else ""
        return Checked(bounded(condition.expression, points, values, found.law), measured + excess)
    wrong = [
        (at, value) for at, value in zip(points, values, strict=True) if not satisfied(condition, value, at)
    ]
    return Checked(not wrong, measured, tuple(f"{at_text(at)}: {value}" for at, value in wrong))


def _agreement(made: Sequence[Agreement]) -> Checked:
    compared = [agreement for agreement in made if not agreement.skipped]
    different = [agreement for agreement in compared if agreement.difference is not None]
    skipped = f", {len(made) - len(compared)} skipped where it raised" if len(made) > len(compared) else ""
    if not compared:
        return Checked(None, f"nothing could be compared{skipped}")
    equal = len(compared) - len(different)
    measured = f"equal at {equal} of {len(compared)} points{skipped}"
    return Checked(
        not different, measured, tuple(f"{at_text(one.at)}: {one.difference}" for one in different)
    )
