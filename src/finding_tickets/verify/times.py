"""Claims about time: which variants to time where, what came of it, and what evidence keeps of that.

Times are taken after everything has been counted, by nothing else running. Evidence says how each claim came
out and keeps no number, since the next run has others.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from finding_tickets.claims.exceptions import conditions_of, located, meets
from finding_tickets.claims.ratios import Ratio, parse_ratio
from finding_tickets.measure.report import At, Code, Interval, Question, Report, TimeJob, Times, at_text
from finding_tickets.model.remediation import SECONDS, Claim
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Evidence, Timing
from finding_tickets.verify.plan import Plan

TIMING_SHARE = 0.5
"""The part of the time-out that rounds may take; the rest is for loading and for the round at work."""

NO_GPU = "times need a real GPU"
HOST = "the CPU"


def ratio_of(claim: Claim, report: Report) -> Ratio:
    """What a claim about seconds states; raises ``ExpressionError`` where that is not understood."""
    return parse_ratio(claim.value, claim.variant, report.runs)


def questions(claims: Iterable[Claim], report: Report) -> tuple[Question, ...]:
    """What is to be timed for claims: at every point where both variants ran without an error.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    edges: dict[tuple[str, str, str], list[float]] = {}
    points: dict[str, At] = {}
    for claim in claims:
        if claim.metric != SECONDS:
            continue
        with located(claim):
            ratio = ratio_of(claim, report)
            for at in points_of(claim, ratio, report):
                points[repr(at)] = at
                key = (claim.variant, ratio.reference, repr(at))
                edges.setdefault(key, []).extend(map(float, ratio.edges(at)))
    return tuple(
        Question(subject, reference, points[place], tuple(found))
        for (subject, reference, place), found in edges.items()
    )


def points_of(claim: Claim, ratio: Ratio, report: Report) -> Iterator[At]:
    """The points at which a claim can be timed."""
    conditions = conditions_of(claim)
    ended = [
        {repr(run.at) for run in report.runs.get(name, ()) if run.error is None}
        for name in (claim.variant, ratio.reference)
    ]
    seen: set[str] = set()
    for at in report.sweep:
        place = repr(at)
        if place not in seen and all(place in of_variant for of_variant in ended) and meets(at, conditions):
            seen.add(place)
            yield at


def job(
    todo: Plan, codes: Iterable[Code], asked: Sequence[Question], report: Report, timeout: float
) -> TimeJob:
    """The order to time what is asked within a time-out, with the code of the variants that take part."""
    names = {name for question in asked for name in (question.subject, question.reference)}
    wanted = (Code(code.folder, {n: at for n, at in code.variants.items() if n in names}) for code in codes)
    return TimeJob(
        root=str(todo.verifiers),
        verifier=todo.verifier,
        codes=tuple(code for code in wanted if code.variants),
        device=report.timed_on,
        questions=tuple(asked),
        seconds=timeout * TIMING_SHARE,
    )


def cannot_time(report: Report) -> str | None:
    """Why nothing can be timed where a report was measured; None where it can."""
    return NO_GPU if report.timed_on == "cuda" and report.meter != "cuda" else None


def device_of(report: Report) -> str:
    """What times are taken on, in words."""
    return report.device if report.timed_on == "cuda" else f"{HOST} ({_cpu()}), 1 thread"


def extent(found: Sequence[tuple[At, Interval]]) -> str:
    """The ratios at some points: of one, or of those with the smallest and the largest."""
    ordered = sorted(found, key=lambda each: each[1].ratio)
    (first, least), (last, most) = ordered[0], ordered[-1]
    return str(least) if len(found) == 1 else f"{least} at {at_text(first)} .. {most} at {at_text(last)}"


def shown(times: Times | None) -> tuple[Timing, ...]:
    """Every timing as a record that is shown, and kept nowhere."""
    if times is None:
        return ()
    return tuple(
        Timing(
            variant=each.subject,
            reference=each.reference,
            at=each.at,
            device=times.device,
            ratio=each.found.ratio if each.found else None,
            low=each.found.low if each.found else None,
            high=each.found.high if each.found else None,
            rounds=each.found.rounds if each.found else 0,
            text=str(each.found) if each.found else each.why or "",
        )
        for each in times.timings
    )


def recorded(claims: Sequence[ClaimResult], report: Report) -> tuple[ClaimResult, ...]:
    """The results of claims as evidence keeps them: of times how they came out, and on what."""
    return tuple(_recorded(claim, report) if claim.metric == SECONDS else claim for claim in claims)


def _recorded(claim: ClaimResult, report: Report) -> ClaimResult:
    if not report.times or report.times.why:
        return claim
    words = {True: "as claimed", False: "not as claimed", None: "undecided"}[claim.holds]
    measured = f"{words}, by times on {_whose(report)}"
    return claim.model_copy(update={"measured": measured, "counterexamples": ()})


def caveat(verdict: Verdict, claims: Iterable[ClaimResult], deciding: Collection[str], report: Report) -> str:
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


def _whose(report: Report) -> str:
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
