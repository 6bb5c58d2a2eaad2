"""Claims about time: which variants to time where, what came of it, and what evidence keeps of that.

Times are taken after everything has been counted, by nothing else running. Evidence says how each claim came
out and keeps no number, since the next run has others.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from finding_tickets.claims.check import TimedPoint, located, meets, parse_conditions
from finding_tickets.claims.ratios import Ratio, parse_ratio
from finding_tickets.measure.tasks import At, Code, Question, TimeJob
from finding_tickets.model.remediation import SECONDS, Claim
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Evidence, MeasuredTicket
from finding_tickets.verify.plan import Plan

TIMING_SHARE = 0.5
"""The part of the time-out that rounds may take; the rest is for loading and for the round at work."""

NO_GPU = "times need a real GPU"
HOST = "the CPU"


def ratio_of(claim: Claim, report: MeasuredTicket) -> Ratio:
    """What a claim about seconds states; raises ``ExpressionError`` where that is not understood."""
    return parse_ratio(claim.value, claim.variant, report.variants)


def questions(claims: Iterable[Claim], report: MeasuredTicket) -> tuple[Question, ...]:
    """What is to be timed for claims: at every point where both variants ran without an error.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    asked: dict[tuple[str, str, str], Question] = {}
    for claim in claims:
        if claim.metric != SECONDS:
            continue
        with located(claim.id, claim.line):
            ratio = ratio_of(claim, report)
            for at in points_of(claim, ratio, report):
                ratio.edges(at)  # raises where the claim has no value
                key = (claim.variant, ratio.reference, repr(at))
                asked[key] = Question(claim.variant, ratio.reference, at)
    return tuple(asked.values())


def points_of(claim: Claim, ratio: Ratio, report: MeasuredTicket) -> Iterator[At]:
    """The points at which a claim can be timed."""
    conditions = parse_conditions(claim.at)
    both = [report.variants.get(name) for name in (claim.variant, ratio.reference)]
    ended = [
        {repr(sample.at) for sample in each.samples if sample.error is None} if each else set()
        for each in both
    ]
    seen: set[str] = set()
    for at in report.sweep:
        place = repr(at)
        if place not in seen and all(place in of_variant for of_variant in ended) and meets(at, conditions):
            seen.add(place)
            yield at


def job(
    todo: Plan, codes: Iterable[Code], asked: Sequence[Question], report: MeasuredTicket, timeout: float
) -> TimeJob:
    """The order to time what is asked within a time-out, with the code of the variants that take part."""
    names = {name for question in asked for name in (question.subject, question.reference)}
    wanted = (Code(code.folder, {n: at for n, at in code.variants.items() if n in names}) for code in codes)
    return TimeJob(
        root=str(todo.verifiers),
        verifier=todo.verifier,
        codes=tuple(code for code in wanted if code.variants),
        device=report.timed_on,
        device_name=device_of(report),
        questions=tuple(asked),
        seconds=timeout * TIMING_SHARE,
    )


def cannot_time(report: MeasuredTicket) -> str | None:
    """Why nothing can be timed where a report was measured; None where it can."""
    return NO_GPU if report.timed_on == "cuda" and report.meter != "cuda" else None


def device_of(report: MeasuredTicket) -> str:
    """What times are taken on, in words."""
    return report.device if report.timed_on == "cuda" else f"{HOST} ({_cpu()}), 1 thread"


def timed_points(variant: str, ratio: Ratio, report: MeasuredTicket) -> Iterator[TimedPoint]:
    """How the time of a variant compares with the reference of a claim, at every point that was timed."""
    for each in report.times.timings if report.times else ():
        if (each.variant, each.reference) == (variant, ratio.reference):
            is_known = each.ratio is not None and each.low is not None and each.high is not None
            interval = (each.ratio or 0.0, each.low or 0.0, each.high or 0.0) if is_known else None
            yield TimedPoint(each.at, each.text, interval)


def recorded(claims: Sequence[ClaimResult], report: MeasuredTicket) -> tuple[ClaimResult, ...]:
    """The results of claims as evidence keeps them: of times how they came out, and on what."""
    return tuple(_recorded(claim, report) if claim.metric == SECONDS else claim for claim in claims)


def _recorded(claim: ClaimResult, report: MeasuredTicket) -> ClaimResult:
    if not report.times or report.times.why:
        return claim
    words = {True: "as claimed", False: "not as claimed", None: "undecided"}[claim.holds]
    measured = f"{words}, by times on {_whose(report)}"
    return claim.model_copy(update={"measured": measured, "counterexamples": ()})


def caveat(
    verdict: Verdict, claims: Iterable[ClaimResult], deciding: Collection[str], report: MeasuredTicket
) -> str:
    """What to add to the reason of a verdict for which times had to hold; empty for any other."""
    timed = [one.id for one in claims if one.metric == SECONDS and one.variant in deciding]
    rests = bool(timed) and verdict in {Verdict.VERIFIED, Verdict.REPRODUCED}
    return f"; {', '.join(timed)} by times on {_whose(report)}" if rests else ""


def settled(now: Evidence, before: Evidence | None) -> Evidence:
    """The evidence to keep.

    A timing that decides nothing says nothing against an earlier one that did, where the inputs are the same.
    """
    if before is None or before.inputs != now.inputs:
        return now
    old, new = before.verification, now.verification
    if [one.id for one in old.claims] != [one.id for one in new.claims]:
        return now
    claims = tuple(
        earlier if claim.metric == SECONDS and claim.holds is None and earlier.holds is not None else claim
        for earlier, claim in zip(old.claims, new.claims, strict=True)
    )
    same = {"claims": claims, "verdict": old.verdict, "reason": old.reason}
    return before if new.model_copy(update=same) == old else now


def _whose(report: MeasuredTicket) -> str:
    """What evidence calls the device: a GPU is part of its environment, and the CPU is not."""
    return report.device if report.timed_on == "cuda" else f"{HOST} of one machine"


def _cpu() -> str:
    """The model of this machine's processor, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"
