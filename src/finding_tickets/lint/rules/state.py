"""Rules about what people decided: status, resolution and severity, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.lint.rules.context import LEAST_LIKENESS, Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Span
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Outcome, Relationship, Status, squeeze, word_for
from finding_tickets.register.disposition import UNSETTLED, filed_as, is_fixed, outcome_of, status_of

FITTING = {
    Status.CLOSED: set(Outcome),
    Status.FIXED: {Outcome.FIXED},
    Status.WONT_FIX: {Outcome.WONT_FIX, Outcome.ACCEPTABLE, Outcome.DUPLICATE},
    Status.INVALID: {Outcome.NOT_A_BUG, Outcome.DUPLICATE},
}
OPEN_FOLDERS = frozenset(["todo", "backlog", "inbox", "active"])
"""Folders of open tickets that are not called after a status of the register."""

_FIXED = (
    "| **Status** | `closed` |\n\n## Resolution\n\n**Status:** Fixed\n\n"
    "## Verification\n\n- [{}] Count the waits"
)
_SECTION = "remediation"
_REMEDIATION = "## Remediation\n\n```yaml\nchecklist:\n  - {item: Count the waits, why: by hand}\n```"


@rule(
    "contradiction",
    Level.WARNING,
    "Status and resolution say the same. Where they differ, lists and people go by different ones.",
    wrong="| **Status** | `wont-fix` |\n\n## Resolution\n\n### Status: FIXED\n\nIt asks once.",
    right="| **Status** | `wont-fix` |\n\n## Resolution\n\n### Status: Won't fix\n\nIt runs once a day.",
)
def contradiction(document: Document, context: Context) -> Iterator[Remark]:
    """Statuses that do not fit the outcome which the ticket states."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None or outcome is None or outcome in FITTING.get(status, set()) or _is_proposed(document):
        return
    yield Remark(_status(document), f"the status is {status}, the resolution {outcome}")


def _is_proposed(document: Document) -> bool:
    """Whether the outcome is one that was recommended when the ticket was filed, which decides nothing."""
    if not isinstance(document, Ticket) or "Resolution" in document.metadata:
        return False
    return document.resolution is not None and document.resolution.proposed


@rule(
    "folder",
    Level.WARNING,
    "A folder that is called after a status or an outcome holds what it says: fixed/ nothing open and "
    "nothing that was not fixed, open/ or triaged/ nothing settled.",
    wrong={"tickets/fixed/B1-PT-01.md": f"| **Status** | `open` |\n\n{_REMEDIATION}"},
    right={"tickets/open/B1-PT-01.md": f"| **Status** | `open` |\n\n{_REMEDIATION}"},
)
def folder(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets in a folder that says something else than they do."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None:
        return
    for name in PurePosixPath(document.path).parts[:-1]:
        settled, wanted = _meaning(name, context)
        if settled is None:
            continue
        if settled is (status in UNSETTLED):
            yield Remark(_status(document), f"the status is {status}, the folder {name}")
        elif wanted and outcome and (wanted is Outcome.FIXED) is not (outcome is Outcome.FIXED):
            yield Remark(_status(document), f"the ticket is {outcome}, the folder {name}")


def _meaning(name: str, context: Context) -> tuple[bool | None, Outcome | None]:
    """Whether a folder is for settled tickets, and for which outcome; None where its name says nothing."""
    outcome = word_for(name, context.vocabulary.outcomes)
    status = word_for(name, context.vocabulary.statuses)
    if outcome:
        return True, Outcome(outcome)
    if squeeze(name) in OPEN_FOLDERS:
        return False, None
    return (None if status is None else status not in UNSETTLED), None


@rule(
    "closed-without-outcome",
    Level.WARNING,
    "A closed ticket says how it ended: fixed, won't fix, not a bug, a duplicate. Closed alone leaves "
    "everybody who meets the code again to find that out.",
    wrong="| **Status** | `closed` |\n\n## Verification\n\n- [x] Count the waits",
    right=_FIXED.format("x"),
)
def closed_without_outcome(document: Document, context: Context) -> Iterator[Remark]:
    """Closed tickets without a resolution, unless their folder is called after an outcome."""
    if status_of(document) is not Status.CLOSED or outcome_of(document) is not None:
        return
    if isinstance(document, Ticket) and document.resolution is None and _filed(document, context) is None:
        hint = "add a section ## Resolution with **Status:** and one of " + ", ".join(Outcome)
        yield Remark(_status(document), "the ticket is closed, and nothing says how it ended", hint)


@rule(
    "closed-without-evidence",
    Level.WARNING,
    "Of a ticket that was closed as fixed, something shows it: a ticked item of its checklist, or a "
    "measurement under evidence/. Otherwise it rests on somebody's word.",
    wrong=_FIXED.format(" "),
    right=_FIXED.format("x"),
)
def closed_without_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets that are fixed by somebody's word alone."""
    if not _is_fixed(document, context) or any(item.done for item in document.checklist):
        return
    if _verdict(document, context) is None:
        message = "closed as fixed with nothing ticked, and no measurement shows it"
        yield Remark(
            _status(document), message, f"tickets verify {document.id.value}, or tick what was checked"
        )


@rule(
    "fixed-but-refuted",
    Level.WARNING,
    "What was closed as fixed is not shown to be wrong by its own measurement.",
    wrong={
        "tickets/B1-PT-01.md": _FIXED.format("x"),
        "evidence/B1-PT-01/simulated.json": "(evidence with the verdict failed)",
    },
    right={
        "tickets/B1-PT-01.md": _FIXED.format("x"),
        "evidence/B1-PT-01/simulated.json": "(evidence with the verdict verified)",
    },
)
def fixed_but_refuted(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets closed as fixed whose last recorded verdict is failed or refuted."""
    verdict = _verdict(document, context) if _is_fixed(document, context) else None
    if verdict in {Verdict.FAILED, Verdict.REFUTED}:
        hint = f"tickets verify {document.id.value} measures again"
        yield Remark(_status(document), f"closed as fixed, and its last measurement says {verdict}", hint)


@rule(
    "done-but-open",
    Level.NOTE,
    "An open ticket has something left to do: where all of its checklist is ticked, it can be closed.",
    wrong=f"| **Status** | `open` |\n\n## Verification\n\n- [x] Count the waits\n\n{_REMEDIATION}",
    right=_FIXED.format("x"),
)
def done_but_open(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets with a ticked checklist."""
    if (
        status_of(document) in UNSETTLED
        and document.checklist
        and all(each.done for each in document.checklist)
    ):
        yield Remark(_status(document), f"the status is {status_of(document)}, and every item is ticked")


@rule(
    "severity-changed",
    Level.WARNING,
    "A severity that was changed while the ticket was reviewed or resolved is changed in the metadata, too; "
    "lists and reports go by that.",
    wrong="| **Severity** | `P1` |\n\n## Resolution\n\n**Status:** Won't fix\n\n### Severity Downgrade\n\n"
    "- Original: P1\n- Revised: P3",
    right="| **Severity** | `P3` |\n\n## Resolution\n\n**Status:** Won't fix\n\n### Severity Downgrade\n\n"
    "- Original: P1\n- Revised: P3",
)
def severity_changed(document: Document, context: Context) -> Iterator[Remark]:
    """The last severity that the text states, where the metadata has another one."""
    if not isinstance(document, Ticket) or not document.severity_changes or document.severity is None:
        return
    last, stated = document.severity_changes[-1], document.severity.value
    if stated is not None and last.revised is not stated:
        message = f"the severity is {last.revised} here and {stated} in the metadata"
        yield Remark(last.span, message, f"tickets set {document.id.value} severity={last.revised}")


@rule(
    "duplicate-of-nothing",
    Level.WARNING,
    "What was closed as a duplicate names the ticket that it repeats.",
    wrong="| **Status** | `closed` |\n\n## Resolution\n\n**Status:** Duplicate",
    right={
        "tickets/B1-PT-01.md": "| **Status** | `closed` |\n\n## Resolution\n\n**Status:** Duplicate\n\n"
        "## Related Findings\n\n- B1-PT-02 (duplicate): the same wait",
        "tickets/B1-PT-02.md": "## Related Findings\n\n- B1-PT-01 (duplicate): the same wait",
    },
)
def duplicate_of_nothing(document: Document, context: Context) -> Iterator[Remark]:
    """Duplicates that name no other ticket as such."""
    if not isinstance(document, Ticket) or outcome_of(document) is not Outcome.DUPLICATE:
        return
    stated = document.resolution and document.resolution.duplicate_of
    if not stated and all(each.relationship is not Relationship.DUPLICATE for each in document.related):
        hint = "name it among the related findings as duplicate"
        yield Remark(_status(document), "closed as a duplicate, and no ticket is named that it repeats", hint)


@rule(
    "missing-remediation",
    Level.NOTE,
    "An open ticket says how it will be measured, so that it can be closed by more than somebody's word.",
    wrong="| **Status** | `open` |",
    right=f"| **Status** | `wont-fix` |\n\n{_REMEDIATION}",
)
def missing_remediation(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets without a Remediation section; one that is not understood was reported."""
    if status_of(document) not in UNSETTLED or document.remediation or not context.understood(document):
        return
    like = next((each for each in document.sections if _is_like(each.title)), None)
    guess = f"did you mean line {like.heading.line}: {like.title}?" if like else None
    hint = guess or "tickets new --with-verifier writes a ticket that has one"
    yield Remark(document.id.span, "an open ticket without a section ## Remediation", hint)


def _is_like(title: str) -> bool:
    """Whether a heading is a misspelt Remediation; Verification is not."""
    return bool(get_close_matches(title.casefold(), [_SECTION], cutoff=LEAST_LIKENESS))


@rule(
    "unreadable-evidence",
    Level.ERROR,
    "A file under evidence/ is one that the tool has written; another one hides the verdict of its ticket.",
    wrong={"evidence/B1-PT-01/simulated.json": '{"inputs": {}, "verifica', "tickets/B1-PT-01.md": ""},
    right={"evidence/readme.txt": "Written by tickets verify.", "tickets/B1-PT-01.md": ""},
    bad_data=True,
)
def unreadable_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Evidence that is damaged or written by hand."""
    try:
        context.verdict(document)
    except BadDataError as error:
        yield Remark(document.id.span, f"{error.file}: {error.message}", error.hint)


def _is_fixed(document: Document, context: Context) -> bool:
    return is_fixed(status_of(document), outcome_of(document), _filed(document, context))


def _filed(document: Document, context: Context) -> Outcome | None:
    return filed_as(document.path, context.vocabulary)


def _verdict(document: Document, context: Context) -> str | None:
    """The recorded verdict; what cannot be read is another rule's business, and here counts as one."""
    try:
        return context.verdict(document)
    except BadDataError:
        return Verdict.STALE


def _status(document: Document) -> Span:
    stated = document.status if isinstance(document, Ticket) else None
    return stated.span if stated else document.id.span
