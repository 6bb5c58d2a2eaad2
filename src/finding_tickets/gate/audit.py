"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from finding_tickets.claims.check import parse_ratio
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.measure import tasks
from finding_tickets.measure.cheats import CHEATS, HONEST, LEAVING, TARGET, TIMING, Cheat
from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.tasks import Code, Job
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import ClaimResult, MeasuredTicket, ResultCheck
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.verify.judge import FIX, FOUND, MEASURED, answer_of, check
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.times import cannot_time, time_job, times_of
from finding_tickets.verify.verify import (
    AGREEMENTS,
    LATER,
    NOW,
    Course,
    Settings,
    comparison,
    draw_seed,
    join,
    name_of_part,
    results_folder,
    run_together,
    shows_little,
)

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
    note: str | None = None  # what of the workload or the results shows little
    error: BadDataError | None = None  # what is wrong with the document


class _AuditPart(NamedTuple):
    """Something that is measured or compared for the audit of a document, by the document's path.

    ``cheat`` stands in for the subject; without one it is the ``variant`` itself. The seed is the workload's
    or, in most parts, the one that was drawn.
    """

    path: str
    cheat: str
    variant: str
    is_stated: bool = False
    is_comparison: bool = False


def audit(
    documents: Iterable[Document],
    isolation: Isolation,
    settings: Settings,
    cheats: Sequence[Cheat] = CHEATS,
) -> Iterator[Audited]:
    """Try cheats on the verifiers of documents, each in a process of its own; nothing is recorded.

    A document is yielded as soon as all cheats have been tried on it. What nothing else has caught is timed
    after everything has been counted, where claims are about that. Cheats are measured with the seed of the
    settings, or a drawn one; the fix itself with the workload's, too.
    """
    if settings.seed is None:
        settings = replace(settings, seed=draw_seed())
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
    if not audits:
        return
    with results_folder(isolation) as folder:
        courses = {path: made.course(cheats, folder) for path, made in audits.items()}
        timed = {}
        for path, outcomes in run_together(isolation, courses):
            if audits[path].timed:
                timed[path] = outcomes
            else:
                yield audits[path].conclude(outcomes, cheats)
    for path, outcomes in timed.items():
        yield audits[path].conclude(outcomes, cheats)


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
    wanted = {name: at for name, at in todo.variants.items() if name in {subject, *targets}}
    revisions = {name: at for name, at in todo.revisions.items() if name in wanted}
    alone = replace(todo, variants=wanted, claims=claims, revisions=revisions)
    try:
        jobs = alone.jobs(settings.meter)
        found = {"source": todo.variants[FOUND], "code": todo.folders[FOUND]}
    except RevisionError as error:
        return str(error)
    return _Audit(document, alone, subject, found, jobs, timed, isolation, settings)


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
    found: Mapping[str, Any]  # where the code as found is
    jobs: Mapping[str, Job]
    timed: tuple[Claim, ...]
    isolation: Isolation
    settings: Settings

    def task(self, target: str, cheat: str, subject: str, job: Any, *, runs: bool = False) -> Task:
        """The task to try one cheat, or to time it; in a process in which the code as found ``runs``, too."""
        payload = {"job": job, "subject": subject, "cheat": cheat, "found": {**self.found, "runs": runs}}
        return self.settings.task(target, payload, Path(self.jobs[subject].code))

    def course(self, cheats: Iterable[Cheat], folder: Path) -> Course[dict[_AuditPart, TaskOutcome]]:
        """What came of every part: all is measured, then each cheat is compared with the others."""
        tasks = self.tasks(cheats, folder)
        # The code as found runs when no cheat is at work any more that could take its answer.
        late = {part: tasks.pop(part) for part in [*tasks] if part.variant == FOUND and not part.is_stated}
        outcomes = yield NOW, tasks
        if late:
            outcomes |= yield LATER, late
        if compared := self.comparisons(outcomes, folder):
            outcomes |= yield NOW, compared
        return outcomes

    def tasks(self, cheats: Iterable[Cheat], folder: Path) -> dict[_AuditPart, Task]:
        """What to measure: every cheat and every variant that the subject is compared with."""
        path, subject, made = self.document.path, self.subject, dict[_AuditPart, Task]()
        parts = [_AuditPart(path, cheat.id, subject) for cheat in cheats]
        for is_stated in (False, True):
            parts.append(_AuditPart(path, HONEST, subject, is_stated))
            others = (name for name in self.jobs if name != subject)
            parts += [_AuditPart(path, LEAVING if name == FOUND else "", name, is_stated) for name in others]
        for part in parts:
            job = replace(self.jobs[part.variant], seed=None if part.is_stated else self.settings.seed)
            if part.cheat:
                task = self.task(TARGET, part.cheat, part.variant, job)
            else:
                task = self.settings.task(tasks.TARGET, job, Path(job.code))
            if job.keeps:
                kept = _folder(folder, part)
                kept.mkdir()
                task = replace(task, kept=str(kept))
            made[part] = task
        return made

    def comparisons(self, outcomes: Mapping[_AuditPart, TaskOutcome], folder: Path) -> dict[_AuditPart, Task]:
        """What to compare once everything has been measured: each cheat with the others."""
        made: dict[_AuditPart, Task] = {}
        for part in outcomes if self.plan.comparisons else ():
            measured = self._measured(part, outcomes) if part.variant == self.subject else ""
            if isinstance(measured, str):
                continue
            compared = part._replace(is_comparison=True)
            given = _folder(folder, compared)
            for name in self.jobs:
                # What the others returned is compared with each cheat.
                own = given / name_of_part(self.plan, name)
                own.mkdir(parents=True)
                for file in _folder(folder, self._part(part, name)).iterdir():
                    os.link(file, own / file.name)
            payload = comparison(self.plan, measured)
            task = self.settings.task(tasks.COMPARISON, payload, self.plan.root)
            made[compared] = replace(task, given=str(given), first=True)
        return made

    def _part(self, part: _AuditPart, variant: str) -> _AuditPart:
        """The part in which a variant was measured that a cheat is compared with; its own for the subject."""
        return (
            part
            if variant == self.subject
            else part._replace(cheat=LEAVING if variant == FOUND else "", variant=variant)
        )

    def _measured(self, part: _AuditPart, outcomes: Mapping[_AuditPart, TaskOutcome]) -> MeasuredTicket | str:
        """What was measured of a cheat and of the others, as if it were one; or why it did not run."""
        parts = []
        for name in self.plan.variants:
            measured = answer_of(outcomes[self._part(part, name)], MEASURED)
            if isinstance(measured, str):
                return measured
            parts.append(measured)
        made = join(self.plan, parts)
        compared = outcomes.get(part._replace(is_comparison=True))
        if compared is None or isinstance(made, str):
            return made
        # Where the comparison itself failed, a claim about it cannot be checked.
        checks = answer_of(compared, AGREEMENTS)
        return made if isinstance(checks, str) else made.model_copy(update={"agreements": checks})

    def conclude(self, outcomes: Mapping[_AuditPart, TaskOutcome], cheats: Sequence[Cheat]) -> Audited:
        """What became of the cheats, unless the fix itself would not pass in their place."""
        tried = []
        path, subject = self.document.path, self.subject
        try:
            for is_stated in (True, False):
                honest = self._claims_against(_AuditPart(path, HONEST, subject, is_stated), outcomes)
                if honest:
                    names = "" if isinstance(honest, str) else ", ".join(claim.id for claim in honest)
                    seed = "" if is_stated else f" with seed {self.settings.seed}"
                    why = f"not as expected: {names}" if names else honest
                    return Audited(
                        self.document, subject, reason=f"{subject} itself does not pass{seed}: {why}"
                    )
            for cheat in cheats:
                against = self._claims_against(_AuditPart(path, cheat.id, subject), outcomes)
                if not isinstance(against, str):
                    # A claim that cannot be checked is as good as false.
                    unchecked = next((claim.measured for claim in against if claim.holds is None), "")
                    by = tuple(claim.id for claim in against)
                    tried.append(Tried(cheat, Fate.CAUGHT if by else Fate.MISSED, by, unchecked))
                elif against.startswith((f"{subject}: ", f"{subject} at ", f"{self.plan.verifier}:")):
                    # The meter refuses what it cannot measure, and names the variant. The verifier may end on
                    # what only the cheat leaves behind: with the fix it went on.
                    tried.append(Tried(cheat, Fate.CAUGHT, ("meter",), against.partition(": ")[2]))
                else:
                    tried.append(Tried(cheat, Fate.UNTRIED, (), against))
        except BadDataError as error:
            return Audited(self.document, subject, error=error.in_file(path))
        stated, drawn = (
            self._measured(_AuditPart(path, HONEST, subject, is_stated), outcomes)
            for is_stated in (True, False)
        )
        return Audited(self.document, subject, tuple(tried), note=_note(stated, drawn))

    def _claims_against(
        self, part: _AuditPart, outcomes: Mapping[_AuditPart, TaskOutcome]
    ) -> list[ClaimResult] | str:
        """The claims that speak against a cheat, or why it did not run."""
        measured = self._measured(part, outcomes)
        if isinstance(measured, str):
            return measured
        claims = self.plan.claims
        against = [claim for claim in check(claims, measured) if not claim.as_expected]
        if not against and self.timed and not part.is_stated and not cannot_time(measured):
            # Times are taken of what nothing else has caught, and nothing else runs meanwhile.
            job, timeout = self.jobs[self.subject], self.settings.timeout
            # All run in one process, at one revision; only the code as found comes from its own.
            beside = {name: at for name, at in self.plan.variants.items() if name != FOUND}
            codes = [Code(job.code, beside)]

            asked = time_job(self.plan, self.timed, codes, measured, timeout)
            task = self.task(TIMING, part.cheat, self.subject, asked, runs=FOUND in self.plan.variants)
            ((_, outcome),) = self.isolation.run({part: task})
            times = times_of(outcome, asked.device_name)
            measured = measured.model_copy(update={"times": times})
            against = [each for each in check((*claims, *self.timed), measured) if not each.as_expected]
        return against


def _folder(folder: Path, part: _AuditPart) -> Path:
    """Where the results of a part are, by a name that tells nothing."""
    return folder / hashlib.sha256(repr(part).encode()).hexdigest()


def _note(stated: MeasuredTicket | str, drawn: MeasuredTicket | str) -> str | None:
    """What of the workload or the results of the fix shows little; None where nothing does."""
    if isinstance(stated, str) or isinstance(drawn, str):
        return None
    checks: tuple[ResultCheck, ...] = (*stated.agreements, *drawn.agreements)
    if kinds := {check.empty for check in checks} - {None} if all(check.empty for check in checks) else set():
        return f"what is compared shows nothing: every result is {' or '.join(sorted(map(str, kinds)))}"
    both = ({each.digest for each in one.agreements if each.digest} for one in (stated, drawn))
    return shows_little(len(stated.sweep), *both, fixed_inputs=drawn.fixed_inputs) or None
