"""Take the times that claims are about: a worker runs the variants by turns, when nothing else runs."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter

from finding_tickets.claims.check import located, meets, parse_conditions, parse_ratio
from finding_tickets.measure.processes.isolation import TaskOutcome
from finding_tickets.measure.tasks import Code, Question, TimeJob
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import MeasuredTicket, Times, Timing
from finding_tickets.model.vocabulary import SECONDS
from finding_tickets.verify.judge import HOST, answer_of
from finding_tickets.verify.plan import Plan

# The part of the time-out that rounds may take; the rest is for loading and for the round at work.
TIMING_SHARE = 0.5

_TIMINGS = TypeAdapter(tuple[Timing, ...])


def time_job(
    todo: Plan, claims: Iterable[Claim], codes: Iterable[Code], measured: MeasuredTicket, timeout: float
) -> TimeJob:
    """What to have a worker time for claims within a time-out, of variants in folders of code.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    asked = questions(claims, measured)
    names = {name for question in asked for name in (question.subject, question.reference)}
    wanted = (Code(each.folder, {n: at for n, at in each.variants.items() if n in names}) for each in codes)
    return TimeJob(
        root=str(todo.verifiers),
        verifier=todo.verifier,
        codes=tuple(each for each in wanted if each.variants),
        device=measured.timed_on,
        device_name=timing_device(measured),
        questions=asked,
        seconds=timeout * TIMING_SHARE,
    )


def questions(claims: Iterable[Claim], measured: MeasuredTicket) -> tuple[Question, ...]:
    """What is to be timed for claims: at every point where both variants ran without an error.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    asked: dict[tuple[str, str, str], Question] = {}
    for claim in claims:
        if claim.metric != SECONDS:
            continue
        with located(claim.id, claim.line):
            ratio, where = (
                parse_ratio(claim.value, claim.variant, measured.variants),
                parse_conditions(claim.at),
            )
            ended = [
                {repr(sample.at) for sample in result.samples if sample.error is None} if result else set()
                for result in map(measured.variants.get, (claim.variant, ratio.reference))
            ]
            # A sweep may have a point twice; it is timed once.
            for place, at in {repr(at): at for at in measured.sweep}.items():
                if all(place in of_variant for of_variant in ended) and meets(at, where):
                    ratio.edges(at)  # raises where the claim has no value
                    key = (claim.variant, ratio.reference, place)
                    asked[key] = Question(claim.variant, ratio.reference, at)
    return tuple(asked.values())


def times_of(outcome: TaskOutcome, device: str) -> Times:
    """The times that a worker took on a device, or why there are none."""
    answer = answer_of(outcome, _TIMINGS)
    if isinstance(answer, str):
        return Times(device=device, why=answer)
    return Times(device=device, timings=answer)


def cannot_time(measured: MeasuredTicket) -> str | None:
    """Why nothing can be timed where a ticket was measured; None where it can."""
    needs_gpu = measured.timed_on == "cuda" and measured.meter != "cuda"
    return "times need a real GPU" if needs_gpu else None


def timing_device(measured: MeasuredTicket) -> str:
    """What times are taken on, in words."""
    if measured.timed_on == "cuda":
        return measured.device
    model = platform.processor() or platform.machine() or "unknown"
    # On Linux, Python knows no more than the architecture.
    with suppress(OSError):
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if named := re.search(r"^model name\s*:\s*(.+?)\s*$", about, re.MULTILINE):
            model = named[1]
    return f"{HOST} ({model}), 1 thread"
