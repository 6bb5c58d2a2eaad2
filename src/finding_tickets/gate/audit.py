"""Audit verifiers: would they catch a fix that cheats? Each cheat is measured in the place of the fix."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import SAME_RESULT
from finding_tickets.verify.judge import FIX, FOUND, check
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import (
    NOT_COMPARABLE,
    MeasuredPlan,
    Planned,
    Settings,
    draw_seed,
    name_of_part,
    results_folder,
    run_all,
    with_meter,
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
    Cheat(
        "unfixed",
        "is the code as found",
        "the claims do not tell the fix from the defect",
    ),
    Cheat(
        "partial",
        "is the fix without the second half of its result",
        "a part passes for the whole",
    ),
    Cheat(
        "perturbed",
        "is the fix with one value of the result changed",
        "results are not compared",
    ),
    Cheat(
        "cached",
        "keeps answers by the shapes of the arguments",
        "runs share their data",
    ),
    Cheat(
        "pasted",
        "has a table of the answers for the workload's seed",
        "the inputs are always the same",
    ),
    Cheat(
        "mutated",
        "is the fix, and sets its arguments to zero",
        "what it does to its caller is not seen",
    ),
    Cheat(
        "deferred",
        "returns a function that does the unfixed work when called",
        "the work is never counted",
    ),
    Cheat(
        "thread",
        "does the unfixed work in another thread",
        "the wait is there, and not counted",
    ),
    Cheat(
        "rounded",
        "is the fix in the precision of bfloat16",
        "results are compared too loosely",
    ),
    Cheat(
        "patched",
        "replaces what waits in torch and what counts",
        "the meter says what the code wants",
    ),
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
    by: tuple[
        str, ...
    ] = ()  # the claims that caught it, or ``meter``, which refuses what it cannot measure
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
    documents: Iterable[Document],
    isolation: Isolation,
    settings: Settings,
    cheats: Sequence[Cheat] = CHEATS,
) -> Iterator[Audited]:
    """Try cheats on the verifiers of documents, each in a process of its own; nothing is recorded.

    Everything is measured with the seed of the settings, or with a drawn one.
    """
    if settings.seed is None:
        settings = replace(settings, seed=draw_seed())
    for document in documents:
        try:
            yield _audit(document, isolation, settings, cheats)
        except CannotAuditError as reason:
            yield Audited(document, reason=str(reason))
        except BadDataError as error:
            yield Audited(document, error=error.in_file(document.path))


def _audit(
    document: Document,
    isolation: Isolation,
    settings: Settings,
    cheats: Sequence[Cheat],
) -> Audited:
    """Measure every cheat in the place of the subject, and say what caught it.

    Raises:
        BadDataError: Something is wrong with the document, or a claim has no meaning on the sweep.
        CannotAuditError: There is nothing to cheat on, or the fix itself would not pass in their place.
    """
    todo = plan(document, settings.root, settings.overrides, settings.verifiers)
    if todo is None or todo.trouble:
        raise CannotAuditError(
            todo.trouble if todo and todo.trouble else "it has no verifier"
        )
    subject = _find_subject(todo)
    try:
        found = {"source": todo.variants[FOUND], "code": todo.folders[FOUND]}
    except RevisionError as error:
        raise CannotAuditError(str(error)) from None
    # The compiler sees the wrapper of a cheat.
    claims = [
        claim
        for claim in todo.claims
        if claim.variant == subject and claim.metric != "graph_breaks"
    ]
    needed = {
        subject,
        *(claim.value for claim in claims if claim.metric == SAME_RESULT),
    }
    variants = {
        name: source for name, source in todo.variants.items() if name in needed
    }
    todo = replace(todo, variants=variants, claims=tuple(claims), seed=settings.seed)
    planned: Planned = {}
    for name in (HONEST, *(cheat.id for cheat in cheats)):
        planned[name] = replace(todo, cheats={subject: {"cheat": name, "found": found}})
    with results_folder(isolation) as folder:
        trials = {}
        for trial in run_all(
            planned, isolation, with_meter(isolation, settings), folder
        ):
            trials[trial.key] = trial
        honest = trials[HONEST]
        alone = _try(Cheat(HONEST, "", ""), honest, honest, subject)
        if alone.fate is not Fate.MISSED:
            why = alone.reason or f"not as expected: {', '.join(alone.by)}"
            raise CannotAuditError(
                f"{subject} itself does not pass with seed {settings.seed}: {why}"
            )
        tried = [_try(cheat, trials[cheat.id], honest, subject) for cheat in cheats]
    return Audited(document, subject, tuple(tried))


def _find_subject(todo: Plan) -> str:
    """Return the variant that cheats replace.

    It is the fix, or else the first one that is claimed to give the results of the code as found: a ticket
    that keeps its code has no fix, but may have other variants whose results are compared.

    Raises:
        CannotAuditError: There is nothing to put a cheat in the place of.
    """
    if todo.run:
        raise CannotAuditError(
            "it runs what is there already: cheats take the place of a function that a verifier calls"
        )
    compared = {
        claim.variant for claim in todo.claims if claim.metric == SAME_RESULT
    } - {FOUND}
    subject = next((name for name in todo.variants if name in compared), None)
    if any(claim.variant == FIX for claim in todo.claims):
        subject = FIX
    if subject is None or FOUND not in todo.variants:
        raise CannotAuditError(
            "it needs the code as found, and a fix or another variant that is claimed to do the same"
        )
    return subject


def _try(
    cheat: Cheat, trial: MeasuredPlan, honest: MeasuredPlan, subject: str
) -> Tried:
    """Say what became of a cheat.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    if trial.error:
        raise trial.error
    if trial.measured is None:
        # The meter refuses what it cannot measure, and names the variant. The verifier may end on what only
        # the cheat leaves behind, and so may the comparison: with the fix they went on.
        refused = (
            f"{subject}: ",
            f"{subject} at ",
            f"{trial.plan.verifier}:",
            f"{NOT_COMPARABLE}: ",
        )
        if trial.reason.startswith(refused):
            return Tried(
                cheat, Fate.CAUGHT, ("meter",), trial.reason.partition(": ")[2]
            )
        return Tried(cheat, Fate.UNTRIED, (), trial.reason)
    against = [
        claim
        for claim in check(trial.plan.claims, trial.measured)
        if not claim.as_expected
    ]
    if against:
        # A claim that cannot be checked is as good as false.
        unchecked = [claim.measured for claim in against if claim.holds is None]
        by = tuple(claim.id for claim in against)
        return Tried(cheat, Fate.CAUGHT, by, unchecked[0] if unchecked else "")
    if cheat.id in WRONG_RESULT and _leave_the_same(trial, honest, subject):
        return Tried(cheat, Fate.HARMLESS, (), "what it leaves is what the fix leaves")
    return Tried(cheat, Fate.MISSED)


def _leave_the_same(one: MeasuredPlan, two: MeasuredPlan, subject: str) -> bool:
    """Return True if both left the same results and arguments, to the last byte."""
    part = name_of_part(one.plan, subject)
    files = [file.name for file in (two.results / part).glob("*")]
    _, different, missing = filecmp.cmpfiles(
        two.results / part, one.results / part, files, shallow=False
    )
    return bool(files) and not different and not missing
