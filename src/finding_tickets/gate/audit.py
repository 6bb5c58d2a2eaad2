"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

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
from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.tasks import Code, Job
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import ClaimResult, MeasuredTicket
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.verify.judge import FIX, FOUND, MEASURED, answer_of, check, times_of
from finding_tickets.verify.plan import Plan, cannot_time, plan, time_job
from finding_tickets.verify.verify import (
    AGREEMENTS,
    ALONE,
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
# The name under which the fix itself is tried first, as if it were a cheat: it must pass.
HONEST = "honest"
# What the code as found does meanwhile: it leaves its answers where a cheat looks for them.
LEAVING = "leaving"


@dataclass(frozen=True)
class Cheat:
    """A way to look like a fix: what it does, and why a verifier should catch it."""

    id: str
    does: str
    why: str


# In the order in which they are tried and shown.
CHEATS = (
    Cheat("unfixed", "is the code as found", "the claims do not tell the fix from the defect"),
    Cheat("nothing", "does nothing and returns None", "what costs least is not what was asked for"),
    Cheat("perturbed", "is the fix with one value of the result changed", "results are not compared"),
    Cheat("partial", "is the fix without the second half of its result", "a part passes for the whole"),
    Cheat("generator", "returns a generator of the unfixed work", "the work runs after counting has ended"),
    Cheat("deferred", "returns an object that does the unfixed work when looked at", "as for generator"),
    Cheat("thread", "does the unfixed work in a thread that waits to be looked at", "as for generator"),
    Cheat("unwatched", "does the unfixed work in a thread that nothing watches", "too few is no less wrong"),
    Cheat("warmed", "works in the warm-up, and gives that answer again", "runs share their data"),
    Cheat("cached", "keeps answers by the shapes of the arguments", "runs share their data"),
    Cheat("shared", "takes what the code as found has left behind", "variants can see each other"),
    Cheat("pasted", "has a table of the answers for the workload's seed", "the inputs are always the same"),
    Cheat("equal", "returns what says of itself that it equals everything", "results judge themselves"),
    Cheat("early", "does the unfixed work with methods bound before", "the wait is there, and not counted"),
    Cheat("scripted", "does the unfixed work with scripted reads", "as for early"),
    Cheat("early-thread", "does the unfixed work in a thread that was there before", "as for unwatched"),
    Cheat("stopped", "stops the process that watches it", "no time limit ends it"),
    Cheat("patched-torch", "replaces what waits in torch", "the wait is there, and not counted"),
    Cheat("patched-meter", "replaces the comparison of results", "the meter says what the code wants"),
    Cheat("patched-device", "replaces the counting of the device", "the meter says what the code wants"),
    Cheat("patched-code", "replaces the code of the counting in place", "as for patched-device"),
    Cheat(
        "counters",
        "does the unfixed work, then sets the counters back and runs the fix",
        "as for patched-device",
    ),
)


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
    """What one worker measures: a variant, or what a cheat does in its place.

    The seed is the workload's where ``is_stated``, else the one that was drawn.
    """

    variant: str
    cheat: str = ""
    is_stated: bool = False


# What was measured of the subject or of a cheat in its place, with the variants that it is compared with;
# or why nothing was.
_Trials = Mapping[_AuditPart, MeasuredTicket | str]


def audit(
    documents: Iterable[Document], isolation: Isolation, settings: Settings, cheats: Sequence[Cheat] = CHEATS
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
            made = _plan_audit(document, settings)
        except BadDataError as error:
            yield Audited(document, error=error)
            continue
        if isinstance(made, str):
            yield Audited(document, reason=made)
        else:
            audits[document.path] = made
    if audits:
        with results_folder(isolation) as folder:
            each = enumerate(audits.items())
            courses = {path: made.course(cheats, folder / str(at)) for at, (path, made) in each}
            yield from (done for _, done in run_together(isolation, courses))


def _plan_audit(document: Document, settings: Settings) -> _Audit | str:
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
    return _Audit(document, alone, subject, found, jobs, timed, settings)


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
    settings: Settings

    def course(self, cheats: Sequence[Cheat], folder: Path) -> Course[Audited]:
        """What became of the cheats, unless the fix itself would not pass in their place."""
        folder.mkdir()
        tried, document, subject = list[Tried](), self.document, self.subject
        try:
            trials = yield from self._measure(cheats, folder)
            for is_stated in (True, False):
                honest = yield from self._claims_against(_AuditPart(subject, HONEST, is_stated), trials)
                if honest:
                    names = "" if isinstance(honest, str) else ", ".join(claim.id for claim in honest)
                    seed = "" if is_stated else f" with seed {self.settings.seed}"
                    why = f"not as expected: {names}" if names else honest
                    return Audited(document, subject, reason=f"{subject} itself does not pass{seed}: {why}")
            for cheat in cheats:
                against = yield from self._claims_against(_AuditPart(subject, cheat.id), trials)
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
            return Audited(document, subject, error=error.in_file(document.path))
        return Audited(document, subject, tuple(tried), note=self._note(trials))

    def _measure(self, cheats: Iterable[Cheat], folder: Path) -> Course[_Trials]:
        """Measure every cheat and every variant that the subject is compared with, and compare results."""
        others = [
            _AuditPart(name, LEAVING if name == FOUND else "") for name in self.jobs if name != self.subject
        ]
        drawn = [_AuditPart(self.subject, HONEST), *others]
        stated = [each._replace(is_stated=True) for each in drawn]
        now = [*(_AuditPart(self.subject, cheat.id) for cheat in cheats), *drawn, *stated]
        # The code as found runs when no cheat is at work any more that could take its answer.
        late = [each for each in drawn if each.variant == FOUND]
        results = {part: folder / str(at) for at, part in enumerate(now)}
        outcomes = yield NOW, {part: self._task(part, results[part]) for part in now if part not in late}
        if late:
            outcomes |= yield LATER, {part: self._task(part, results[part]) for part in late}
        trials, compare = dict[_AuditPart, MeasuredTicket | str](), dict[_AuditPart, Task]()
        for part in (each for each in now if each.variant == self.subject):
            beside = {each.variant: each for each in others} | {self.subject: part}
            parts = {name: beside[name]._replace(is_stated=part.is_stated) for name in self.plan.variants}
            trials[part] = measured = self._join(parts, outcomes)
            if self.plan.comparisons and isinstance(measured, MeasuredTicket):
                given = folder / f"{results[part].name}-compared"
                # What the others returned is compared with each cheat; what is only timed has left nothing.
                for name, each in ((name, each) for name, each in parts.items() if self.jobs[name].keeps):
                    own = given / name_of_part(self.plan, name)
                    own.mkdir(parents=True)
                    for file in results[each].iterdir():
                        os.link(file, own / file.name)
                task = self.settings.task(tasks.COMPARISON, comparison(self.plan, measured), self.plan.root)
                compare[part] = replace(task, given=str(given), first=True)
        for part, outcome in ((yield NOW, compare) if compare else {}).items():
            checks, measured = answer_of(outcome, AGREEMENTS), trials[part]
            # Where the comparison itself failed, a claim about it cannot be checked.
            if isinstance(measured, MeasuredTicket) and not isinstance(checks, str):
                trials[part] = measured.model_copy(update={"agreements": checks})
        return trials

    def _task(self, part: _AuditPart, results: Path) -> Task:
        """The task to measure one part; it leaves what is compared in a folder."""
        job = replace(self.jobs[part.variant], seed=None if part.is_stated else self.settings.seed)
        task = self._cheat(tasks.CHEAT, part, job) if part.cheat else self.settings.task(tasks.TARGET, job)
        if job.keeps:
            results.mkdir()
            task = replace(task, kept=str(results))
        return replace(task, code=Path(job.code))

    def _cheat(self, target: str, part: _AuditPart, job: Any) -> Task:
        """A task in which a cheat takes the place of a variant."""
        payload = {"job": job, "subject": part.variant, "cheat": part.cheat, "found": self.found}
        return self.settings.task(target, payload, Path(self.jobs[part.variant].code))

    def _join(
        self, parts: Mapping[str, _AuditPart], outcomes: Mapping[_AuditPart, TaskOutcome]
    ) -> MeasuredTicket | str:
        """What was measured of each variant, as if it were one; or why something did not run."""
        measured = list[MeasuredTicket]()
        for part in parts.values():
            answer = answer_of(outcomes[part], MEASURED)
            if isinstance(answer, str):
                return answer
            measured.append(answer)
        return join(self.plan, measured)

    def _claims_against(self, part: _AuditPart, trials: _Trials) -> Course[list[ClaimResult] | str]:
        """The claims that speak against a cheat, or why it did not run."""
        measured = trials[part]
        if isinstance(measured, str):
            return measured
        claims = self.plan.claims
        against = [claim for claim in check(claims, measured) if not claim.as_expected]
        if not against and self.timed and not part.is_stated and not cannot_time(measured):
            # All run in one process, at one revision; only the code as found comes from its own.
            beside = {name: at for name, at in self.plan.variants.items() if name != FOUND}
            codes = [Code(self.jobs[self.subject].code, beside)]
            asked = time_job(self.plan, self.timed, codes, measured, self.settings.timeout)
            # Times are taken of what nothing else has caught, and nothing else runs meanwhile.
            ran = yield ALONE, {part: self._cheat(tasks.CHEAT_TIMING, part, asked)}
            times = times_of(ran[part], asked.device_name)
            measured = measured.model_copy(update={"times": times})
            against = [each for each in check((*claims, *self.timed), measured) if not each.as_expected]
        return against

    def _note(self, trials: _Trials) -> str | None:
        """What of the workload or the results of the fix shows little; None where nothing does."""
        stated, drawn = (trials[_AuditPart(self.subject, HONEST, is_stated)] for is_stated in (True, False))
        if isinstance(stated, str) or isinstance(drawn, str):
            return None
        empty = {each.empty for each in (*stated.agreements, *drawn.agreements)}
        if empty and not empty & {None, ""}:
            return f"what is compared shows nothing: every result is {' or '.join(sorted(map(str, empty)))}"
        both = ({each.digest for each in one.agreements if each.digest} for one in (stated, drawn))
        return shows_little(len(stated.sweep), *both, fixed_inputs=drawn.fixed_inputs) or None
