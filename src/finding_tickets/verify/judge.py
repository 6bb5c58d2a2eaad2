"""The claims of a ticket beside what was measured; pure, no files and no processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finding_tickets.claims.check import (
    Checked,
    at_text,
    check_counts,
    check_results,
    check_times,
    decides_ending,
    located,
    meets,
    parse_conditions,
)
from finding_tickets.claims.language import ExpressionError, check_variables, parse_condition
from finding_tickets.claims.metrics import COUNTS, ENDINGS
from finding_tickets.measure.tasks import ResultPair
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.model.verification import ClaimResult, MeasuredTicket
from finding_tickets.register.index import stated_claim
from finding_tickets.verify.plan import comparison_of
from finding_tickets.verify.times import ratio_of, timed_points


def check(claims: Sequence[Claim], report: MeasuredTicket) -> tuple[ClaimResult, ...]:
    """Every claim beside what was measured.

    Raises:
        BadDataError: A claim names a variable that the sweep does not have, or has no value at a point.
    """
    for claim in claims:
        with located(claim.id, claim.line):
            _check_names(claim, report)
    troubles = {name: trouble(name, report, claims) for name in report.variants}
    return tuple(_result(claim, _checked(claim, report, troubles)) for claim in claims)


def trouble(variant: str, report: MeasuredTicket, claims: Sequence[Claim]) -> str | None:
    """Why the runs of a variant decide nothing; None where they do.

    No run took place, one raised at a point where no claim about the variant applies to that, or one met an
    operation whose cost is unknown.
    """
    result = report.variants.get(variant)
    if result is None or not result.samples:
        return f"{variant} was not run"
    own = [claim for claim in claims if claim.variant == variant and claim.metric in ENDINGS]
    for run in result.samples:
        ooms = run.metrics.get("ooms", 0)
        decided = False
        for claim in own if run.error else ():
            with located(claim.id, claim.line):
                decided = decided or decides_ending(claim.metric, claim.value, claim.at, run.at, ooms)
        if run.error and not decided:
            return f"{variant} at {at_text(run.at)}: {run.error}"
    unknown = ", ".join(result.unknown)
    return f"{variant} uses operations of unknown cost: {unknown}" if unknown else None


def unchecked(claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    """Every claim as one that nothing was measured for."""
    return tuple(_result(claim, Checked(None, "nothing")) for claim in claims)


def _result(claim: Claim, checked: Checked) -> ClaimResult:
    return ClaimResult(
        id=claim.id,
        variant=claim.variant,
        metric=claim.metric,
        claimed=stated_claim(claim).text,
        measured=checked.measured,
        holds=checked.holds,
        expect=claim.expect,
        why=claim.why,
        counterexamples=checked.counterexamples,
    )


def _check_names(claim: Claim, report: MeasuredTicket) -> None:
    """Raise ``ExpressionError`` for the first variable of a claim that the sweep does not have."""
    known = list(report.sweep[0])
    for text in [*claim.at, *claim.at.values()]:
        check_variables(parse_condition(text), known)
    if claim.metric == SECONDS:
        reference = ratio_of(claim, report).reference
        if reference in known:
            raise ExpressionError(f"'{reference}' names both a variant and a variable of the sweep")
        known.append(reference)
    if claim.metric != SAME_RESULT:
        check_variables(parse_condition(claim.value), known)


def _checked(claim: Claim, report: MeasuredTicket, troubles: Mapping[str, str | None]) -> Checked:
    with located(claim.id, claim.line):
        ratio = ratio_of(claim, report) if claim.metric == SECONDS else None
        involved = [claim.variant, ratio.reference] if ratio else [claim.variant]
        why_not = next(filter(None, map(troubles.get, involved)), None)
        if why_not:
            return Checked(None, why_not)
        where = parse_conditions(claim.at)
        if ratio:
            if report.times is None or report.times.why:
                return Checked(None, (report.times and report.times.why) or "not timed")
            timed = [each for each in timed_points(claim.variant, ratio, report) if meets(each.at, where)]
            return check_times(ratio, timed, len(report.sweep), report.times.device)
        if claim.metric == SAME_RESULT:
            wanted = comparison_of(claim)
            made = [
                one
                for one in report.agreements
                if ResultPair(one.variant, one.target, one.tolerance) == wanted and meets(one.at, where)
            ]
            compared = [(one.at, one.difference) for one in made if not one.skipped]
            return check_results(compared, len(made) - len(compared))
        samples = report.variants[claim.variant].samples
        runs = [
            run
            for run in samples
            # What was counted up to an exception is no cost of the whole.
            if claim.metric in run.metrics
            and (run.error is None or claim.metric in ENDINGS)
            and meets(run.at, where)
        ]
        if runs:
            counts = [run.metrics[claim.metric] for run in runs]
            return check_counts(claim.metric, claim.value, [run.at for run in runs], counts, report.sweep)
        counted = any(claim.metric in run.metrics for run in samples)
        if claim.metric in COUNTS and not counted:
            return Checked(None, f"the {report.meter} meter does not count {claim.metric}")
        return Checked(None, "not measured at any point of the claim")
