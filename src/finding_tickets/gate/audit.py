"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from finding_tickets.claims.check import parse_ratio
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.measure.cheats import CHEATS, HONEST, TARGET, TIMING, Cheat
from finding_tickets.measure.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.tasks import Code
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import MeasuredTicket
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.verify.judge import FIX, FOUND, check, questions
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import (
    Settings,
    cannot_time,
    measured_of,
    time_job,
    times_of,
    timing_device,
)

NOT_TRIED = frozenset({"graph_breaks"})
"""Metrics that a cheat is not held to: the compiler sees its wrapper."""


class Fate(StrEnum):
    """What became of a cheat."""

    CAUGHT = "caught"
    MISSED = "missed"
    UNTRIED = "untried"


@dataclass(frozen=True)
class Tried:
    """A cheat and what became of it.

    ``by`` are the claims that caught it, or ``meter``, which refuses what it cannot measure. ``reason`` is
    why it refused, why claims could not be checked, or why the cheat was not tried.
    """

    cheat: Cheat
    fate: Fate
    by: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Audited:
    """A document whose verifier was audited with cheats in the place of the variant ``subject``.

    ``reason`` is why no cheat could be tried, ``error`` what is wrong with the document.
    """

    document: Document
    subject: str | None = None
    tried: tuple[Tried, ...] = ()
    reason: str | None = None
    error: BadDataError | None = None


def audit(
    documents: Iterable[Document],
    isolation: Isolation,
    settings: Settings,
    cheats: Sequence[Cheat] = CHEATS,
) -> Iterator[Audited]:
    """Try cheats on the verifiers of documents, each in a process of its own; nothing is recorded.

    A document is yielded as soon as all cheats have been tried on it. What nothing else has caught is timed
    after everything has been counted, where claims are about that.
    """
    audits: dict[str, _Audit] = {}
    for document in documents:
        try:
            made = _plan_audit(document, settings)
        except BadDataError as error:
            yield Audited(document, error=error)
            continue
        if isinstance(made, str):
            yield Audited(document, reason=made)
        else:
            audits[document.path] = made
    names = [HONEST, *(cheat.id for cheat in cheats)]
    tasks = {
        (path, name): made.task(TARGET, name, settings) for path, made in audits.items() for name in names
    }
    arrived: dict[str, dict[str, TaskOutcome]] = {path: {} for path in audits}
    for (path, name), outcome in isolation.run(tasks):
        arrived[path][name] = outcome
        if len(arrived[path]) == len(names) and not audits[path].timed:
            yield _conclude(audits[path], arrived[path], cheats, isolation, settings)
    for path, made in audits.items():
        if made.timed:
            yield _conclude(made, arrived[path], cheats, isolation, settings)


@dataclass(frozen=True)
class _Audit:
    """One document with the plan of its audit: the variants that are run and the claims about the subject.

    ``timed`` are those claims that are about its time.
    """

    document: Document
    plan: Plan
    subject: str
    payload: Mapping[str, Any]
    timed: tuple[Claim, ...]

    def task(self, target: str, cheat: str, settings: Settings, **more: Any) -> Task:
        """The task to try one cheat, or to time it."""
        payload = {**self.payload, **more, "cheat": cheat}
        return settings.task(target, payload, Path(self.payload["job"]["code"]))

    def with_times(
        self, cheat: str, measured: MeasuredTicket, isolation: Isolation, settings: Settings
    ) -> MeasuredTicket:
        """What was measured of a cheat, with its times; nothing else runs meanwhile."""
        variants = {
            name: at for name, at in self.plan.variants.items() if name in self.payload["job"]["variants"]
        }
        code = Code(self.payload["job"]["code"], variants)
        asked = questions(self.timed, measured)
        job = asdict(time_job(self.plan, [code], asked, measured, settings.timeout))
        ((_, outcome),) = isolation.run({cheat: self.task(TIMING, cheat, settings, job=job)})
        return measured.model_copy(update={"times": times_of(outcome, timing_device(measured))})


def subject_of(todo: Plan) -> str | None:
    """The variant that cheats stand in for: the fix, or else the first that is claimed to do what it should.

    A ticket that keeps its code has no fix, and yet other variants whose results are compared.
    """
    about = {claim.variant for claim in todo.claims}
    if FIX in about:
        return FIX
    compared = {claim.variant for claim in todo.claims if claim.metric == SAME_RESULT}
    return next((name for name in todo.variants if name in compared and name != FOUND), None)


def _plan_audit(document: Document, settings: Settings) -> _Audit | str:
    """What to measure for an audit, or why it cannot be.

    Raises:
        BadDataError: A file is missing, or a claim cannot be understood.
    """
    todo = plan(document, settings.root, settings.overrides, settings.verifiers)
    if todo is None:
        return "it has no verifier"
    if todo.trouble:
        return todo.trouble
    subject = subject_of(todo)
    if subject is None or FOUND not in todo.variants:
        return "it needs the code as found, and a fix or another variant that is claimed to do the same"
    about = tuple(claim for claim in todo.claims if claim.variant == subject)
    claims = tuple(claim for claim in about if claim.metric not in {*NOT_TRIED, SECONDS})
    timed = tuple(claim for claim in about if claim.metric == SECONDS)
    targets = {claim.value for claim in claims if claim.metric == SAME_RESULT}
    targets |= {parse_ratio(claim.value, subject, todo.variants).reference for claim in timed}
    wanted = {name: at for name, at in todo.variants.items() if name in {FOUND, subject, *targets}}
    # All run in the process of the cheat, which has the code as found beside it.
    revision = todo.revisions.get(subject)
    revisions = dict.fromkeys(wanted, revision) if revision else {}
    try:
        only_found = replace(todo, variants={FOUND: todo.variants[FOUND]}, claims=())
        (original,) = only_found.jobs(settings.meter, Path()).values()
        alone = replace(todo, variants=wanted, claims=claims, revisions=revisions)
        (job,) = alone.jobs(settings.meter, Path()).values()
    except RevisionError as error:
        return str(error)
    payload = {
        "job": asdict(replace(job, variants={name: wanted[name] for name in wanted if name != FOUND})),
        "subject": subject,
        "found": {
            "source": asdict(todo.variants[FOUND]),
            "code": original.code,
            "runs": FOUND in targets,
        },
    }
    return _Audit(document, alone, subject, payload, timed)


def _conclude(
    made: _Audit,
    outcomes: Mapping[str, TaskOutcome],
    cheats: Sequence[Cheat],
    isolation: Isolation,
    settings: Settings,
) -> Audited:
    """What became of the cheats, unless the fix itself would not pass in their place."""

    def judge(cheat: str) -> tuple[tuple[str, ...], str, str | None]:
        """The claims that speak against a cheat, why one was not checked, and why there was no run."""
        measured = measured_of(outcomes[cheat])
        if isinstance(measured, str):
            return (), "", measured
        against = [claim for claim in check(made.plan.claims, measured) if not claim.as_expected]
        if not against and made.timed and not cannot_time(measured):
            # Times are taken of what nothing else has caught.
            timed = made.with_times(cheat, measured, isolation, settings)
            claims = (*made.plan.claims, *made.timed)
            against = [claim for claim in check(claims, timed) if not claim.as_expected]
        # A claim that cannot be checked is as good as false.
        unchecked = next((claim.measured for claim in against if claim.holds is None), "")
        return tuple(claim.id for claim in against), unchecked, None

    tried = []
    try:
        against, _, reason = judge(HONEST)
        if reason is not None or against:
            why = reason or f"not as expected: {', '.join(against)}"
            return Audited(made.document, made.subject, reason=f"{made.subject} itself does not pass: {why}")
        for cheat in cheats:
            against, unchecked, reason = judge(cheat.id)
            if reason is None:
                fate = Fate.CAUGHT if against else Fate.MISSED
                tried.append(Tried(cheat, fate, against, unchecked))
            elif reason.startswith((f"{made.subject}: ", f"{made.subject} at ")):
                # The meter refuses what it cannot measure, and names the variant.
                tried.append(Tried(cheat, Fate.CAUGHT, ("meter",), reason.partition(": ")[2]))
            else:
                tried.append(Tried(cheat, Fate.UNTRIED, (), reason))
    except BadDataError as error:
        return Audited(made.document, made.subject, error=error.in_file(made.document.path))
    return Audited(made.document, made.subject, tuple(tried))
