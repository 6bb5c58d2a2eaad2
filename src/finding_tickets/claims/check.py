"""Check the claims of a ticket at every point at which they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from finding_tickets.claims.exceptions import conditions_of, located, meets, unexplained
from finding_tickets.claims.expressions import Condition, ExpressionError, Growth, check_variables, satisfied
from finding_tickets.claims.fitting import ENDINGS, Fit, fit, span
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.claims.growth import undominated
from finding_tickets.measure.measurement import COUNTS
from finding_tickets.measure.report import Agreement, At, Report, Run, at_text
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.model.verification import ClaimResult
from finding_tickets.register.particulars import text_of
from finding_tickets.verify.plan import comparison_of
from finding_tickets.verify.times import extent, ratio_of


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
    for claim in claims:
        with located(claim):
            check_names(claim, report)
    troubles = {name: trouble(name, report, claims) for name in report.runs}
    return tuple(_result(claim, report, troubles) for claim in claims)


def trouble(variant: str, report: Report, claims: Sequence[Claim]) -> str | None:
    """Why the runs of a variant decide nothing; None where they do.

    No run took place, one raised at a point where no claim about the variant speaks of that, or one met an
    operation whose cost is unknown.
    """
    runs = report.runs.get(variant, ())
    if not runs:
        return f"{variant} was not run"
    failed = unexplained(runs, [claim for claim in claims if claim.variant == variant])
    if failed:
        return f"{variant} at {at_text(failed.at)}: {failed.error}"
    unknown = sorted({name for run in runs for name in run.measurement.unknown})
    return f"{variant} uses operations of unknown cost: {', '.join(unknown)}" if unknown else None


def unchecked(claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    """Every claim as one that nothing was measured for."""
    return tuple(_beside(claim, Checked(None, "nothing")) for claim in claims)


def _result(claim: Claim, report: Report, troubles: Mapping[str, str | None]) -> ClaimResult:
    with located(claim):
        involved = [claim.variant]
        if claim.metric == SECONDS:
            involved.append(ratio_of(claim, report).reference)
        why_not = next(filter(None, map(troubles.get, involved)), None)
        return _beside(claim, Checked(None, why_not) if why_not else _check(claim, report))


def _beside(claim: Claim, checked: Checked) -> ClaimResult:
    return ClaimResult(
        id=claim.id,
        variant=claim.variant,
        metric=claim.metric,
        claimed=text_of(claim),
        measured=checked.measured,
        holds=checked.holds,
        expect=claim.expect,
        why=claim.why,
        counterexamples=checked.counterexamples,
    )


def _check(claim: Claim, report: Report) -> Checked:
    conditions = conditions_of(claim)
    if claim.metric == SAME_RESULT:
        made = [made for made in report.agreements if made.comparison == comparison_of(claim)]
        return _agreement([made for made in made if meets(made.at, conditions)])
    if claim.metric == SECONDS:
        return _timed(claim, report)
    runs = [run for run in report.runs[claim.variant] if _counts(run, claim) and meets(run.at, conditions)]
    if not runs:
        return Checked(None, _why_not_measured(claim, report))
    values = [run.measurement.metrics[claim.metric] for run in runs]
    points = [run.at for run in runs]
    found = fit(points, values, report.sweep, is_ending=claim.metric in ENDINGS)
    checked = _compare(parse_condition(claim.value), points, values, found)
    return replace(checked, measured=checked.measured + _coverage(len(runs), len(report.sweep)))


def _why_not_measured(claim: Claim, report: Report) -> str:
    counted = any(claim.metric in run.measurement.metrics for run in report.runs[claim.variant])
    if claim.metric in COUNTS and not counted:
        return f"the {report.meter} meter does not count {claim.metric}"
    return "not measured at any point of the claim"


def _coverage(checked: int, points: int) -> str:
    """At how many points of the sweep a claim was checked, where that is not all of them."""
    return f", at {checked} of {points} points" if checked < points else ""


def check_names(claim: Claim, report: Report) -> None:
    """Raise ``ExpressionError`` for the first variable of a claim that the sweep does not have."""
    known = report.sweep[0]
    for text in [*claim.at, *claim.at.values()]:
        check_variables(parse_condition(text), known)
    if claim.metric == SECONDS:
        reference = ratio_of(claim, report).reference
        if reference in known:
            raise ExpressionError(f"'{reference}' names both a variant and a variable of the sweep")
        check_variables(parse_condition(claim.value), [*known, reference])
    elif claim.metric != SAME_RESULT:
        check_variables(parse_condition(claim.value), known)


def _counts(run: Run, claim: Claim) -> bool:
    """Whether a run takes part: what was counted up to an exception is no cost of the whole."""
    return claim.metric in run.measurement.metrics and (run.error is None or claim.metric in ENDINGS)


def _compare(condition: Condition, points: Sequence[At], values: Sequence[int], found: Fit) -> Checked:
    if isinstance(condition, Growth):
        return _bounded(condition, found)
    measured = str(found) if min(values) < max(values) else span(values)
    wrong = [
        (at, value) for at, value in zip(points, values, strict=True) if not satisfied(condition, value, at)
    ]
    return Checked(not wrong, measured, tuple(f"{at_text(at)}: {value}" for at, value in wrong))


def _bounded(condition: Growth, found: Fit) -> Checked:
    if found.law is None:
        return Checked(None, f"the sweep cannot tell: {found}")
    beyond = undominated(found.law, condition.expression)
    excess = f", in which {' and '.join(beyond)} is not bounded by the class" if beyond else ""
    return Checked(not beyond, found.law + excess)


def _timed(claim: Claim, report: Report) -> Checked:
    """A ratio holds where all of its interval does, and is false where nothing of one does."""
    if report.times is None or report.times.why:
        return Checked(None, (report.times and report.times.why) or "not timed")
    ratio, conditions = ratio_of(claim, report), conditions_of(claim)
    asked = (claim.variant, ratio.reference)
    made = [each for each in report.times.timings if (each.subject, each.reference) == asked]
    here = [each for each in made if meets(each.at, conditions)]
    if not here:
        return Checked(None, "not timed at any point of the claim")
    found = [(each.at, each.found) for each in here if each.found]
    outcomes = [(at, interval, ratio.outcome(interval, at)) for at, interval in found]
    wrong = tuple(f"{at_text(at)}: {interval}" for at, interval, outcome in outcomes if outcome is False)
    if wrong:
        return Checked(False, f"{extent(found)}, on {report.times.device}", wrong)
    unknown = [f"{each.why} at {at_text(each.at)}" for each in here if not each.found]
    undecided = [(at, interval) for at, interval, outcome in outcomes if outcome is None]
    unknown += [f"undecided at {at_text(at)}: {interval}" for at, interval in undecided]
    if unknown:
        more = f" and at {len(unknown) - 1} more points" if len(unknown) > 1 else ""
        return Checked(None, f"{unknown[0]}{more}, on {report.times.device}")
    measured = extent(found) + _coverage(len(here), len(report.sweep))
    return Checked(True, f"{measured}, on {report.times.device}")


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
