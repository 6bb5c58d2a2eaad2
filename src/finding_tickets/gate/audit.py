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
from finding_tickets.model.verification import ClaimResult
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.verify.judge import FIX, FOUND, MEASURED, answer_of, check
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.times import cannot_time, take_times
from finding_tickets.verify.verify import Settings

# Metrics that a cheat is not held to: the compiler sees its wrapper.
NOT_TRIED = frozenset({"graph_breaks"})


class Fate(StrEnum):
    """What became of a cheat."""

    CAUGHT = "caught"
    MISSED = "missed"
    UNTRIED = "untried"


@dataclass(frozen=True)
class Tried:
    """A cheat and what became of it."""

    cheat: Cheat
    fate: Fate
    by: tuple[str, ...] = ()  # the claims that caught it, or ``meter``, which refuses what it cannot measure
    reason: str = ""  # why it refused, why claims could not be checked, or why the cheat was not tried


@dataclass(frozen=True)
class Audited:
    """A document whose verifier was audited."""

    document: Document
    subject: str | None = None  # the variant in whose place the cheats were measured
    tried: tuple[Tried, ...] = ()
    reason: str | None = None  # why no cheat could be tried
    error: BadDataError | None = None  # what is wrong with the document


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
            made = _plan_audit(document, isolation, settings)
        except BadDataError as error:
            yield Audited(document, error=error)
            continue
        if isinstance(made, str):
            yield Audited(document, reason=made)
        else:
            audits[document.path] = made
    names = [HONEST, *(cheat.id for cheat in cheats)]
    tasks = {(path, name): made.task(TARGET, name) for path, made in audits.items() for name in names}
    arrived: dict[str, dict[str, TaskOutcome]] = {path: {} for path in audits}
    for (path, name), outcome in isolation.run(tasks):
        arrived[path][name] = outcome
        if len(arrived[path]) == len(names) and not audits[path].timed:
            yield audits[path].conclude(arrived[path], cheats)
    for path, made in audits.items():
        if made.timed:
            yield made.conclude(arrived[path], cheats)


def _plan_audit(document: Document, isolation: Isolation, settings: Settings) -> _Audit | str:
    """What to measure for an audit, or why it cannot be."""
    todo = plan(document, settings.root, settings.overrides, settings.verifiers)
    if todo is None:
        return "it has no verifier"
    if todo.trouble:
        return todo.trouble
    if todo.run:
        return "it runs what is there already: cheats take the place of a function that a verifier calls"
    subject = subject_of(todo)
    if subject is None or FOUND not in todo.variants:
        return "it needs the code as found, and a fix or another variant that is claimed to do the same"
    about = tuple(claim for claim in todo.claims if claim.variant == subject)
    claims = tuple(claim for claim in about if claim.metric not in {*NOT_TRIED, SECONDS})
    timed = tuple(claim for claim in about if claim.metric == SECONDS)
    targets = {claim.value for claim in claims if claim.metric == SAME_RESULT}
    targets |= {parse_ratio(claim.value, subject, todo.variants).reference for claim in timed}
    wanted = {name: at for name, at in todo.variants.items() if name in {FOUND, subject, *targets}}
    # All run in the process of the cheat, at its revision; only the code as found comes from its own.
    revision = todo.revisions.get(subject)
    revisions = dict.fromkeys(wanted, revision) if revision else {}
    alone = replace(todo, variants=wanted, claims=claims, revisions=revisions)
    try:
        folders = {name: code.folder for code in todo.code().values() for name in code.variants}
        (job,) = alone.jobs(settings.meter, Path()).values()
    except RevisionError as error:
        return str(error)
    payload = {
        "job": asdict(replace(job, variants={name: wanted[name] for name in wanted if name != FOUND})),
        "subject": subject,
        "found": {
            "source": asdict(todo.variants[FOUND]),
            "code": folders[FOUND],
            "runs": FOUND in targets,
        },
    }
    return _Audit(document, alone, subject, payload, timed, isolation, settings)


def subject_of(todo: Plan) -> str | None:
    """The variant that cheats stand in for: the fix, or else the first that is claimed to do what it should.

    A ticket that keeps its code has no fix, and yet other variants whose results are compared.
    """
    about = {claim.variant for claim in todo.claims}
    if FIX in about:
        return FIX
    compared = {claim.variant for claim in todo.claims if claim.metric == SAME_RESULT}
    return next((name for name in todo.variants if name in compared and name != FOUND), None)


@dataclass(frozen=True)
class _Audit:
    """The audit of one document: what is run, and the claims about the subject that are about its time."""

    document: Document
    plan: Plan
    subject: str
    payload: Mapping[str, Any]
    timed: tuple[Claim, ...]
    isolation: Isolation
    settings: Settings

    def task(self, target: str, cheat: str, **more: Any) -> Task:
        """The task to try one cheat, or to time it."""
        payload = {**self.payload, **more, "cheat": cheat}
        return self.settings.task(target, payload, Path(self.payload["job"]["code"]))

    def conclude(self, outcomes: Mapping[str, TaskOutcome], cheats: Sequence[Cheat]) -> Audited:
        """What became of the cheats, unless the fix itself would not pass in their place."""
        tried = []
        try:
            honest = self._claims_against(HONEST, outcomes[HONEST])
            if honest:
                names = "" if isinstance(honest, str) else ", ".join(claim.id for claim in honest)
                why = (
                    f"{self.subject} itself does not pass: {f'not as expected: {names}' if names else honest}"
                )
                return Audited(self.document, self.subject, reason=why)
            for cheat in cheats:
                against = self._claims_against(cheat.id, outcomes[cheat.id])
                if not isinstance(against, str):
                    # A claim that cannot be checked is as good as false.
                    unchecked = next((claim.measured for claim in against if claim.holds is None), "")
                    by = tuple(claim.id for claim in against)
                    tried.append(Tried(cheat, Fate.CAUGHT if by else Fate.MISSED, by, unchecked))
                elif against.startswith((f"{self.subject}: ", f"{self.subject} at ")):
                    # The meter refuses what it cannot measure, and names the variant.
                    tried.append(Tried(cheat, Fate.CAUGHT, ("meter",), against.partition(": ")[2]))
                else:
                    tried.append(Tried(cheat, Fate.UNTRIED, (), against))
        except BadDataError as error:
            return Audited(self.document, self.subject, error=error.in_file(self.document.path))
        return Audited(self.document, self.subject, tuple(tried))

    def _claims_against(self, cheat: str, outcome: TaskOutcome) -> list[ClaimResult] | str:
        """The claims that speak against a cheat, or why it did not run."""
        measured = answer_of(outcome, MEASURED)
        if isinstance(measured, str):
            return measured
        claims = self.plan.claims
        against = [claim for claim in check(claims, measured) if not claim.as_expected]
        if not against and self.timed and not cannot_time(measured):
            # Times are taken of what nothing else has caught, and nothing else runs meanwhile.
            job, timeout = self.payload["job"], self.settings.timeout
            # The code as found has a folder of its own, which the payload names.
            beside = {name: at for name, at in self.plan.variants.items() if name in job["variants"]}
            codes = [Code(job["code"], beside)]

            def run(job: dict[str, Any]) -> TaskOutcome:
                ((_, outcome),) = self.isolation.run({cheat: self.task(TIMING, cheat, job=job)})
                return outcome

            times = take_times(self.plan, self.timed, lambda: codes, measured, timeout, run)
            measured = measured.model_copy(update={"times": times})
            against = [each for each in check((*claims, *self.timed), measured) if not each.as_expected]
        return against
