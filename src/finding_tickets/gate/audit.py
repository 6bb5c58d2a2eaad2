"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from shutil import copytree
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.measure import tasks
from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.model.verification import MeasuredTicket
from finding_tickets.model.vocabulary import SAME_RESULT
from finding_tickets.verify.judge import FIX, FOUND, MEASURED, answer_of, check
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import (
    AGREEMENTS,
    Settings,
    comparison,
    draw_seed,
    join,
    name_of_part,
    results_folder,
)

# Their fault lies in what they leave: where that is what the fix leaves, there is none.
WRONG_RESULT = frozenset({"partial", "perturbed", "mutated", "rounded"})
# The name under which the fix itself is tried first, as if it were a cheat: it must pass.
HONEST = "honest"


@dataclass(frozen=True)
class Cheat:
    """A way to look like a fix: what it does, and why a verifier should catch it."""

    id: str
    does: str
    why: str


# In the order in which they are tried and shown.
CHEATS = (
    Cheat("unfixed", "is the code as found", "the claims do not tell the fix from the defect"),
    Cheat("partial", "is the fix without the second half of its result", "a part passes for the whole"),
    Cheat("perturbed", "is the fix with one value of the result changed", "results are not compared"),
    Cheat("cached", "keeps answers by the shapes of the arguments", "runs share their data"),
    Cheat("pasted", "has a table of the answers for the workload's seed", "the inputs are always the same"),
    Cheat("mutated", "is the fix, and sets its arguments to zero", "what it does to its caller is not seen"),
    Cheat(
        "deferred", "returns a function that does the unfixed work when called", "the work is never counted"
    ),
    Cheat("thread", "does the unfixed work in another thread", "the wait is there, and not counted"),
    Cheat("rounded", "is the fix in the precision of bfloat16", "results are compared too loosely"),
    Cheat("patched", "replaces what waits in torch and what counts", "the meter says what the code wants"),
)


class Fate(StrEnum):
    """The fate of a cheat."""

    CAUGHT = "caught"
    MISSED = "missed"
    UNTRIED = "untried"
    # What it leaves is what the fix leaves, to the last bit.
    HARMLESS = "harmless"


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


class CannotAuditError(Exception):
    """No cheat can be tried on a document; the message says why."""


def audit(
    documents: Iterable[Document], isolation: Isolation, settings: Settings, cheats: Sequence[Cheat] = CHEATS
) -> Iterator[Audited]:
    """Try cheats on the verifiers of documents, each in a process of its own; nothing is recorded.

    Everything is measured with the seed of the settings, or with a drawn one.
    """
    if settings.seed is None:
        settings = replace(settings, seed=draw_seed())
    for document in documents:
        try:
            with results_folder(isolation) as folder:
                yield plan_audit(document, settings, folder).run(isolation, cheats)
        except CannotAuditError as reason:
            yield Audited(document, reason=str(reason))
        except BadDataError as error:
            yield Audited(document, error=error.in_file(document.path))


def plan_audit(document: Document, settings: Settings, folder: Path) -> Audit:
    """Plan an audit: what to measure, the variant that cheats replace, and where the code as found is.

    That variant is the fix, or else the first one that is claimed to give the results of the code as found: a
    ticket that keeps its code has no fix, but may have other variants whose results are compared.

    Raises:
        BadDataError: Something is wrong with the document.
        CannotAuditError: There is nothing to put a cheat in the place of, or a revision is missing.
    """
    todo = plan(document, settings.root, settings.overrides, settings.verifiers)
    if todo is None:
        raise CannotAuditError("it has no verifier")
    if todo.trouble:
        raise CannotAuditError(todo.trouble)
    if todo.run:
        raise CannotAuditError(
            "it runs what is there already: cheats take the place of a function that a verifier calls"
        )
    compared = {claim.variant for claim in todo.claims if claim.metric == SAME_RESULT} - {FOUND}
    subject = next((name for name in todo.variants if name in compared), None)
    if any(claim.variant == FIX for claim in todo.claims):
        subject = FIX
    if subject is None or FOUND not in todo.variants:
        raise CannotAuditError(
            "it needs the code as found, and a fix or another variant that is claimed to do the same"
        )
    # The compiler sees the wrapper of a cheat.
    claims = [claim for claim in todo.claims if claim.variant == subject and claim.metric != "graph_breaks"]
    needed = {subject, *(claim.value for claim in claims if claim.metric == SAME_RESULT)}
    variants = {name: source for name, source in todo.variants.items() if name in needed}
    try:
        found = {"source": todo.variants[FOUND], "code": todo.folders[FOUND]}
    except RevisionError as error:
        raise CannotAuditError(str(error)) from None
    todo = replace(todo, variants=variants, claims=tuple(claims), seed=settings.seed)
    return Audit(document, todo, subject, found, settings, folder)


@dataclass(frozen=True)
class Audit:
    """The audit of one document. Results of variants and cheats are in ``folder``, below their names."""

    document: Document
    plan: Plan
    subject: str
    found: Mapping[str, Any]
    settings: Settings
    folder: Path

    def run(self, isolation: Isolation, cheats: Sequence[Cheat]) -> Audited:
        """Measure every cheat in the place of the subject, and say what caught it.

        Raises:
            BadDataError: A claim has no meaning on the sweep.
            CannotAuditError: The fix itself would not pass in their place, or has no code.
        """
        names = [HONEST, *(cheat.id for cheat in cheats)]
        outcomes = dict(isolation.run(self._tasks(names)))
        trials = {name: self._join(name, outcomes) for name in names}
        self._compare(isolation, trials)
        honest = self._try(Cheat(HONEST, "", ""), trials[HONEST])
        if honest.fate is not Fate.MISSED:
            why = honest.reason or f"not as expected: {', '.join(honest.by)}"
            seed = self.settings.seed
            raise CannotAuditError(f"{self.subject} itself does not pass with seed {seed}: {why}")
        tried = [self._try(cheat, trials[cheat.id]) for cheat in cheats]
        return Audited(self.document, self.subject, tuple(tried))

    def _tasks(self, names: Sequence[str]) -> dict[str, Task]:
        """Return the task of each cheat, and of each variant that the subject is compared with."""
        jobs = self.plan.jobs(self.settings.meter)
        own = jobs.pop(self.subject)
        todo = {}
        for name in names:
            payload = {"job": own, "cheat": name, "found": self.found}
            todo[name] = self.settings.task(tasks.CHEAT, payload, Path(own.code))
        for name, job in jobs.items():
            todo[name] = self.settings.task(tasks.TARGET, job, Path(job.code))
        for name, task in todo.items():
            (self.folder / name).mkdir()
            todo[name] = replace(task, kept=str(self.folder / name))
        return todo

    def _join(self, cheat: str, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket | str:
        """Return what was measured with a cheat as if it were one, or why something did not run."""
        measured = []
        for variant in self.plan.variants:
            outcome = outcomes[cheat if variant == self.subject else variant]
            answer = answer_of(outcome, MEASURED)
            if isinstance(answer, str):
                return answer
            measured.append(answer)
        return join(self.plan, measured)

    def _compare(self, isolation: Isolation, trials: dict[str, MeasuredTicket | str]) -> None:
        """Add to each trial the outcomes of comparing its results."""
        todo = {}
        for cheat, measured in trials.items():
            if not self.plan.comparisons or isinstance(measured, str):
                continue
            given = self.folder / f"{cheat} compared"
            for variant in self.plan.variants:
                results = self.folder / (cheat if variant == self.subject else variant)
                copytree(results, given / name_of_part(self.plan, variant), copy_function=os.link)
            task = self.settings.task(tasks.COMPARISON, comparison(self.plan, measured), self.plan.root)
            todo[cheat] = replace(task, given=str(given))
        for cheat, outcome in isolation.run(todo):
            agreements, measured = answer_of(outcome, AGREEMENTS), trials[cheat]
            # Where the comparison itself failed, a claim about it cannot be checked.
            if isinstance(measured, MeasuredTicket) and not isinstance(agreements, str):
                trials[cheat] = measured.model_copy(update={"agreements": agreements})

    def _try(self, cheat: Cheat, measured: MeasuredTicket | str) -> Tried:
        """Say what became of a cheat.

        Raises:
            BadDataError: A claim has no meaning on the sweep.
        """
        if isinstance(measured, str):
            # The meter refuses what it cannot measure, and names the variant. The verifier may end on what
            # only the cheat leaves behind: with the fix it went on.
            if measured.startswith((f"{self.subject}: ", f"{self.subject} at ", f"{self.plan.verifier}:")):
                return Tried(cheat, Fate.CAUGHT, ("meter",), measured.partition(": ")[2])
            return Tried(cheat, Fate.UNTRIED, (), measured)
        against = [claim for claim in check(self.plan.claims, measured) if not claim.as_expected]
        if against:
            # A claim that cannot be checked is as good as false.
            unchecked = [claim.measured for claim in against if claim.holds is None]
            by = tuple(claim.id for claim in against)
            return Tried(cheat, Fate.CAUGHT, by, unchecked[0] if unchecked else "")
        if cheat.id in WRONG_RESULT and self._left_the_same(cheat.id):
            return Tried(cheat, Fate.HARMLESS, (), "what it leaves is what the fix leaves")
        return Tried(cheat, Fate.MISSED)

    def _left_the_same(self, cheat: str) -> bool:
        """Return whether a cheat left the results and arguments that the fix left, to the last byte."""
        files = [file.name for file in (self.folder / HONEST).iterdir()]
        _, different, missing = filecmp.cmpfiles(
            self.folder / HONEST, self.folder / cheat, files, shallow=False
        )
        return bool(files) and not different and not missing
