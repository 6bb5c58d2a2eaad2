"""Judge what a worker measured: compare each claim with its measurement. No files are read.

docs/concepts.md has the rules of the verdict as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from finding_tickets.claims.check import (
    ONCE,
    Checked,
    at_text,
    check_counts,
    located,
    meets,
    named_at,
    parse_conditions,
)
from finding_tickets.claims.language import GROWTH, check_variables, parse_condition
from finding_tickets.claims.laws import span
from finding_tickets.claims.metrics import COUNTS, ENDINGS
from finding_tickets.measure.processes.isolation import TaskOutcome
from finding_tickets.measure.tasks import CannotMeasureError
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import (
    ClaimResult,
    Contradiction,
    MeasuredTicket,
    ResultCheck,
    SiteLaw,
    Verification,
)
from finding_tickets.model.vocabulary import (
    ELSEWHERE,
    OUTCOME,
    SAME_RESULT,
    WITHOUT,
    Verdict,
)
from finding_tickets.verify.plan import Plan

T = TypeVar("T")

FOUND = "found"
FIX = "fix"
DECIDING = (FOUND, FIX)
# Claims about these compare no number.
NOT_COUNTED = {SAME_RESULT, ELSEWHERE}
NOT_COMPARED = "result not compared"
# Stands at lines for an access that the one of a race should have come after.
RACED = "raced"

MEASURED = TypeAdapter(MeasuredTicket)


def claim_same_result(claim_id: str, line: int = 1) -> Claim:
    """Return the claim that the fix has the result of the code as found."""
    return Claim(
        id=claim_id,
        variant=FIX,
        metric=SAME_RESULT,
        value=FOUND,
        at={},
        expect="holds",
        why=None,
        tolerance=None,
        line=line,
    )


def parse_worker_result(outcome: TaskOutcome, kind: TypeAdapter[T]) -> T:
    """Validate the result of a worker. Raise CannotMeasureError with the reason if there is none."""
    if outcome.reason is not None:
        raise CannotMeasureError(outcome.reason)
    try:
        return kind.validate_python(outcome.value)
    except ValidationError as error:
        raise CannotMeasureError(
            f"invalid result from the worker: {error.errors()[0]['msg']}"
        ) from None


def check(claims: Sequence[Claim], measured: MeasuredTicket) -> tuple[ClaimResult, ...]:
    """Return every claim with its measurement.

    Raises:
        BadDataError: A claim names a variable that the sweep does not have, or has no value at a point.
    """
    known = list(measured.sweep[0])
    for claim in claims:
        with located(claim.id, claim.line):
            for text in [*claim.at, *claim.at.values()]:
                check_variables(parse_condition(text), known)
            if claim.metric not in NOT_COUNTED:
                check_variables(parse_condition(claim.value), known)
    troubles = {name: trouble(name, measured, claims) for name in measured.variants}
    results = []
    for claim in claims:
        checked = _checked(claim, measured, troubles)
        said = (
            _said_of_place(claim, checked, measured) if checked.holds is False else ()
        )
        results.append(_result(claim, checked, said))
    return tuple(results)


def open_claims(claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    """Every claim as one that nothing was measured for."""
    return tuple(_result(claim, Checked(None, "nothing")) for claim in claims)


def trouble(
    variant: str, measured: MeasuredTicket, claims: Sequence[Claim]
) -> str | None:
    """Return why the runs of a variant decide nothing; None if they decide.

    No run took place, one raised at a point where no claim about the variant applies to that, or one met an
    operation whose cost is unknown.
    """
    result = measured.variants.get(variant)
    if not result or not result.samples:
        return f"{variant} was not run"
    own = [
        claim
        for claim in claims
        if claim.variant == variant and claim.metric in ENDINGS
    ]
    for sample in result.samples:
        # A size that no file states may be none that the code is made for.
        if not sample.error or sample.at in measured.further:
            continue
        decided = False
        for claim in own:
            # Running out of memory is an exception like others unless the claim counts failed allocations.
            if claim.metric != "ooms" or sample.metrics.get("ooms"):
                with located(claim.id, claim.line):
                    # A claim allows the exception or is false; a growth class is neither.
                    is_class = parse_condition(claim.value).relation == GROWTH
                    decided |= not is_class and meets(
                        sample.at, parse_conditions(claim.at)
                    )
        if not decided:
            return f"{named_at(variant, sample.at)}: {sample.error}"
    return (
        f"{variant} uses operations of unknown cost: {', '.join(result.unknown)}"
        if result.unknown
        else None
    )


def judge(
    todo: Plan, measured: MeasuredTicket, *, unchanged: bool = False
) -> Verification:
    """Return the verification of a ticket.

    With ``unchanged``, found and fix are the same code: what holds for the fix does not count as its success.

    Raises:
        BadDataError: As ``check`` does.
    """
    claims = check(todo.claims, measured)
    later = result_difference(claims) if todo.is_closed else ""
    if later:
        claims = tuple(claim for claim in claims if claim.id != OUTCOME)
    deciding = [name for name in DECIDING if name in todo.variants]
    why_not = next(
        filter(None, (trouble(name, measured, todo.claims) for name in deciding)), None
    )
    verdict, reason = verdict_of(
        claims, has_fix=FIX in deciding, keep=todo.keep, trouble=why_not
    )
    if verdict is Verdict.VERIFIED and not todo.keep:
        if race := find_race(todo.claims, measured):
            verdict, reason = Verdict.FAILED, race
        elif not any(
            one.variant == FIX and one.metric == SAME_RESULT for one in claims
        ):
            reason += f"; by now {later}" if later else f"; {NOT_COMPARED}"
        if measured.dearer and verdict is Verdict.VERIFIED:
            reason += f"; costs more otherwise: {', '.join(measured.dearer)}"
    modelled = [one.id for one in claims if one.modelled and one.variant in DECIDING]
    if modelled and verdict is not Verdict.INCONCLUSIVE:
        reason += f"; {', '.join(modelled)} by modelled numbers"
    if unchanged and not todo.keep:
        verdict = Verdict.INCONCLUSIVE if verdict is Verdict.VERIFIED else verdict
        reason = f"found and fix are the same code; {reason}"
    return Verification(
        ticket=todo.document.id.value,
        verdict=verdict,
        reason=reason,
        meter=measured.meter,
        torch=measured.torch,
        device=measured.device,
        sweep=measured.sweep,
        variants=measured.variants,
        claims=claims,
        not_measured=measured.not_measured,
        further=measured.further,
    )


def result_difference(results: Iterable[ClaimResult]) -> str:
    """Say how the fix leaves something else behind than the code as found; empty if it does not."""
    for claim in results:
        if claim.id == OUTCOME and claim.counterexamples:
            return f"the result differs: {claim.counterexamples[0].removeprefix(f'{at_text(ONCE)}: ')}"
    return ""


def find_race(claims: Sequence[Claim], measured: MeasuredTicket) -> str:
    """Say where the fix races and the code as found is free of races; empty if a claim decides that."""
    if any((claim.variant, claim.metric) == (FIX, "hazards") for claim in claims):
        return ""
    if count_hazards(measured, FOUND) >= count_hazards(measured, FIX):
        return ""
    known = {
        (each.function, each.code)
        for each in measured.variants[FOUND].sites
        if each.what == "hazards"
    }
    places = []
    for each in measured.variants[FIX].sites:
        if each.what == "hazards" and (each.function, each.code) not in known:
            places.append(f"{each.file}:{each.line}: {each.code}")
    where = "; ".join(places) or "the same lines, more often"
    return f"the fix races where found does not, at {where}{raced_text(measured.variants[FIX].sites)}"


def raced_text(sites: Iterable[SiteLaw]) -> str:
    """Name the lines that each race should have come after, as far as they are known."""
    return unordered_text(
        [
            f"{each.file}:{each.line}: {each.code}"
            for each in sites
            if each.what == RACED
        ]
    )


def unordered_text(places: Sequence[str]) -> str:
    """Return the end of a sentence about a race. Which of several lines belongs to it is not known."""
    if not places:
        return ""
    several = "one of " if len(places) > 1 else ""
    return f", not ordered after {several}{'; '.join(places)}"


def count_hazards(measured: MeasuredTicket | Verification, variant: str) -> int:
    """Return how often a variant races at all points together; 0 for one that was not measured."""
    result = measured.variants.get(variant)
    return (
        sum(sample.metrics.get("hazards", 0) for sample in result.samples)
        if result
        else 0
    )


def propose(stated: Sequence[Claim], measured: MeasuredTicket) -> dict[str, str]:
    """Return values of claims about the fix that hold, by metric.

    The metrics are those that are claimed of the code as found, and not of the fix yet. A value is the law,
    or else the range of what was measured.
    """
    samples, laws = measured.variants[FIX].samples, measured.variants[FIX].laws
    known = {claim.metric for claim in stated if claim.variant == FIX}
    values = {}
    for claim in stated:
        counts = [
            sample.metrics[claim.metric]
            for sample in samples
            if claim.metric in sample.metrics
        ]
        if claim.variant == FOUND and counts and claim.metric not in known:
            values[claim.metric] = laws.get(claim.metric) or span(counts)
    return values


def verdict_of(
    results: Sequence[ClaimResult], *, has_fix: bool, keep: bool, trouble: str | None
) -> tuple[Verdict, str]:
    """The verdict and its reason.

    Claims about other variants than ``found`` and ``fix`` do not decide. ``trouble`` is why the runs of one
    of these two decide nothing. With ``keep`` the claims are what justifies leaving the code as it is.
    """
    deciding = [claim for claim in results if claim.variant in DECIDING]
    if trouble:
        return Verdict.INCONCLUSIVE, trouble
    if not deciding:
        return Verdict.INCONCLUSIVE, "there is no claim about found or fix"
    if open_claims := [
        f"{claim.id}: {claim.measured}" for claim in deciding if claim.holds is None
    ]:
        return Verdict.INCONCLUSIVE, f"not checked: {'; '.join(open_claims)}"
    # What is said of the code as found comes first.
    false = [
        claim
        for name in DECIDING
        for claim in deciding
        if claim.variant == name and not claim.holds
    ]
    if false:
        reasons = []
        for claim in false:
            counted = f"{claim.id}: claimed {claim.claimed}, measured {claim.measured}"
            reasons.append(result_difference([claim]) or claim.contradicted or counted)
        is_refuted = not keep and all(claim.variant == FOUND for claim in false)
        return Verdict.REFUTED if is_refuted else Verdict.FAILED, "; ".join(reasons)
    if keep:
        return (
            Verdict.VERIFIED,
            "every claim that justifies keeping the code as found holds",
        )
    if any(claim.variant == FIX for claim in deciding):
        return Verdict.VERIFIED, "every claim about found and fix holds"
    why = "the fix has no claims" if has_fix else "there is no fix yet"
    return Verdict.REPRODUCED, f"every claim about found holds; {why}"


def _said_of_place(
    claim: Claim, checked: Checked, measured: MeasuredTicket
) -> tuple[Contradiction, ...]:
    """Say where and how often the statement of a ticket waits, against a claim; empty for other claims."""
    if not measured.lines:
        return ()
    if claim.metric == ELSEWHERE:
        return measured.elsewhere
    file, _, line = measured.lines.get(claim.variant, "").rpartition(":")
    text = _say_still(claim, checked, measured)
    return (
        Contradiction(what=claim.metric, text=text, file=file, line=int(line or 0)),
    )


def _say_still(claim: Claim, checked: Checked, measured: MeasuredTicket) -> str:
    """Say how often the statement of a ticket waits, against a claim about that."""
    line = measured.lines.get(claim.variant)
    does = "waits" if claim.metric == "syncs" else f"costs {claim.metric}"
    times = times_text(checked.measured)
    if claim.variant != FIX:
        return f"{line} {does} {times} in {claim.variant}, claimed {claim.text}"
    if not line:
        return f"the statement is gone, and {claim.metric} {claim.text} is claimed"
    counts = []
    for name in (FOUND, FIX):
        counts.append(
            [
                sample.metrics.get(claim.metric, 0)
                for sample in measured.variants[name].samples
            ]
        )
    before = (
        ""
        if counts[0] == counts[1]
        else f"; it did so {times_text(span(counts[0]))} in found"
    )
    return f"{line} still {does} {times}{before}"


def times_text(number: str) -> str:
    """Return how often something happens in words, by a number or a law."""
    return "once" if number == "1" else f"{number} times"


def _result(
    claim: Claim, checked: Checked, said: tuple[Contradiction, ...] = ()
) -> ClaimResult:
    return ClaimResult(
        id=claim.id,
        variant=claim.variant,
        metric=claim.metric,
        claimed=claim.text,
        measured=checked.measured,
        holds=checked.holds,
        expect=claim.expect,
        why=claim.why,
        counterexamples=checked.counterexamples,
        modelled=checked.modelled,
        below=checked.below,
        said=said,
    )


def _checked(
    claim: Claim, measured: MeasuredTicket, troubles: Mapping[str, str | None]
) -> Checked:
    with located(claim.id, claim.line):
        if why_not := troubles.get(claim.variant):
            return Checked(None, why_not)
        where = parse_conditions(claim.at)
        if claim.metric == ELSEWHERE:
            lines = (
                ", ".join(each.place for each in measured.elsewhere if each.file)
                or "none"
            )
            return Checked(not measured.elsewhere, lines)
        if claim.metric == SAME_RESULT:
            wanted = (claim.variant, claim.value, claim.tolerance)
            return _check_results(
                [
                    one
                    for one in measured.agreements
                    if (one.variant, one.target, one.tolerance) == wanted
                    and meets(one.at, where)
                ]
            )
        samples = measured.variants[claim.variant].samples
        counted = [sample for sample in samples if claim.metric in sample.metrics]
        # What was counted up to an exception is no cost of the whole.
        runs = [
            sample
            for sample in counted
            if (sample.error is None or claim.metric in ENDINGS)
            and meets(sample.at, where)
        ]
        if runs:
            counts = [sample.metrics[claim.metric] for sample in runs]
            points = [sample.at for sample in runs]
            ranges = [sample.ranges.get(claim.metric) for sample in runs]
            return check_counts(
                claim.metric, claim.value, points, counts, measured.sweep, ranges
            )
        # What is simulated counts every metric, or was before a metric was there.
        if claim.metric in COUNTS and not counted and measured.meter != "simulated":
            return Checked(
                None, f"the {measured.meter} meter does not count {claim.metric}"
            )
        return Checked(None, "not measured at any point of the claim")


def _check_results(made: Sequence[ResultCheck]) -> Checked:
    """A claim about equal results; where both variants raised there was nothing to compare."""
    compared = [each for each in made if not each.skipped]
    beside = (
        f", {len(made) - len(compared)} skipped where it raised"
        if len(compared) < len(made)
        else ""
    )
    if not compared:
        return Checked(None, f"nothing could be compared{beside}")
    different = tuple(
        f"{at_text(each.at)}: {each.difference}"
        for each in compared
        if each.difference is not None
    )
    if left_out := sorted({name for each in compared for name in each.left_out}):
        beside += f"{WITHOUT}{'; '.join(left_out)}"
    equal = len(compared) - len(different)
    kinds = {each.empty for each in compared}
    if None not in kinds:
        beside += f", which shows nothing: every result is {' or '.join(sorted(map(str, kinds)))}"
    return Checked(
        not different, f"equal at {equal} of {len(compared)} points{beside}", different
    )
