"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from finding_tickets.claims.check import check
from finding_tickets.claims.ratios import parse_ratio
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.checkouts import RevisionError
from finding_tickets.measure.cheats import CHEATS, HONEST, TARGET, TIMING, Cheat
from finding_tickets.measure.isolation import Isolation, Outcome, Task
from finding_tickets.measure.report import Code, Question, Report
from finding_tickets.measure.source import Source
from finding_tickets.measure.tasks import Measured
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.verify.jobs import jobs, with_times
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.session import Settings, times_of
from finding_tickets.verify.times import cannot_time, device_of, questions
from finding_tickets.verify.times import job as time_job
from finding_tickets.verify.verdict import FIX, FOUND

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
            made = _planned(document, settings)
        except BadDataError as error:
            yield Audited(document, error=error)
            continue
        if isinstance(made, str):
            yield Audited(document, reason=made)
        else:
            audits[document.path] = made
    names = [HONEST, *(cheat.id for cheat in cheats)]
    tasks = {(path, name): audits[path].task(name, settings) for path in audits for name in names}
    arrived: dict[str, dict[str, Outcome]] = {path: {} for path in audits}
    for (path, name), outcome in isolation.run(tasks):
        arrived[path][name] = outcome
        if len(arrived[path]) == len(names) and not audits[path].timed:
            yield _audited(audits[path], arrived[path], cheats)
    for path, made in audits.items():
        if made.timed:
            yield _audited(made, arrived[path], cheats, _Timer(made, isolation, settings))


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

    def task(self, cheat: str, settings: Settings) -> Task:
        """The order to try one cheat."""
        return self._task(TARGET, {**self.payload, "cheat": cheat}, settings)

    def timing(self, cheat: str, asked: Sequence[Question], report: Report, settings: Settings) -> Task:
        """The order to time one cheat."""
        job = self.payload["job"]
        code = Code(job["code"], {name: Source(**at) for name, at in job["variants"].items()})
        order = asdict(time_job(self.plan, [code], asked, report, settings.timeout))
        return self._task(TIMING, {**self.payload, "job": order, "cheat": cheat}, settings)

    def _task(self, target: str, payload: Mapping[str, Any], settings: Settings) -> Task:
        return Task(
            target=target,
            payload=payload,
            root=settings.root,
            timeout=settings.timeout,
            memory=settings.memory,
            code=Path(self.payload["job"]["code"]),
        )


@dataclass(frozen=True)
class _Timer:
    """Times cheats of an audit, one after the other."""

    made: _Audit
    isolation: Isolation
    settings: Settings

    def timed(self, cheat: str, measured: Measured) -> Measured:
        """What was measured of a cheat, with its times."""
        report = measured.report
        asked = questions(self.made.timed, report)
        task = self.made.timing(cheat, asked, report, self.settings)
        ((_, outcome),) = self.isolation.run({cheat: task})
        return with_times(measured, times_of(outcome, device_of(report)))


def subject_of(todo: Plan) -> str | None:
    """The variant that cheats stand in for: the fix, or else the first that is claimed to do what it should.

    A ticket that keeps its code has no fix, and yet other variants whose results are compared.
    """
    about = {claim.variant for claim in todo.claims}
    if FIX in about:
        return FIX
    compared = {claim.variant for claim in todo.claims if claim.metric == SAME_RESULT}
    return next((name for name in todo.variants if name in compared and name != FOUND), None)


def _planned(document: Document, settings: Settings) -> _Audit | str:
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
        (original,) = jobs(only_found, settings.meter, Path()).values()
        alone = replace(todo, variants=wanted, claims=claims, revisions=revisions)
        (job,) = jobs(alone, settings.meter, Path()).values()
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


def _audited(
    made: _Audit, outcomes: Mapping[str, Outcome], cheats: Sequence[Cheat], timer: _Timer | None = None
) -> Audited:
    """What became of the cheats, unless the fix itself would not pass in their place."""
    try:
        honest = _Held.of(made, HONEST, outcomes[HONEST], timer)
        if honest.reason is not None or honest.against:
            why = honest.reason or f"not as expected: {', '.join(honest.against)}"
            return Audited(made.document, made.subject, reason=f"{made.subject} itself does not pass: {why}")
        tried = tuple(
            _tried(cheat, _Held.of(made, cheat.id, outcomes[cheat.id], timer), made.subject)
            for cheat in cheats
        )
    except BadDataError as error:
        place = error.file or made.document.path
        located = BadDataError(error.message, file=place, line=error.line, hint=error.hint)
        return Audited(made.document, made.subject, error=located)
    return Audited(made.document, made.subject, tried)


@dataclass(frozen=True)
class _Held:
    """The claims that speak against a run, and why if they could not be checked; or why there was no run."""

    against: tuple[str, ...] = ()
    unchecked: str = ""
    reason: str | None = None

    @classmethod
    def of(cls, made: _Audit, cheat: str, outcome: Outcome, timer: _Timer | None) -> _Held:
        """What speaks against a cheat; its time, where that can be taken, if nothing else does."""
        if outcome.reason is not None:
            return cls(reason=outcome.reason)
        try:
            measured = TypeAdapter(Measured).validate_python(outcome.value)
        except ValidationError as error:
            return cls(reason=f"what came back is no measurement: {error.errors()[0]['msg']}")
        held = _held(made.plan.claims, measured)
        if held.against or timer is None or cannot_time(measured.report):
            return held
        return _held((*made.plan.claims, *made.timed), timer.timed(cheat, measured))


def _held(claims: Sequence[Claim], measured: Measured) -> _Held:
    """The claims that did not come out as expected; one that cannot be checked is as good as false."""
    against = [claim for claim in check(claims, measured.report) if not claim.as_expected]
    unchecked = next((claim.measured for claim in against if claim.holds is None), "")
    return _Held(tuple(claim.id for claim in against), unchecked)


def _tried(cheat: Cheat, held: _Held, subject: str) -> Tried:
    if held.reason is None:
        return Tried(cheat, Fate.CAUGHT if held.against else Fate.MISSED, held.against, held.unchecked)
    # The meter refuses what it cannot measure, and names the variant.
    if held.reason.startswith((f"{subject}: ", f"{subject} at ")):
        return Tried(cheat, Fate.CAUGHT, ("meter",), held.reason.partition(": ")[2])
    return Tried(cheat, Fate.UNTRIED, (), held.reason)
