"""Rules about what people decided: status and resolution, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Status, word_for
from finding_tickets.register.disposition import UNSETTLED, outcome_of, status_of
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import Remark, rule

FITTING = {
    Status.CLOSED: set(Outcome),
    Status.FIXED: {Outcome.FIXED},
    Status.WONT_FIX: {Outcome.WONT_FIX, Outcome.ACCEPTABLE, Outcome.DUPLICATE},
    Status.INVALID: {Outcome.NOT_A_BUG, Outcome.DUPLICATE},
}


@rule(
    "contradiction",
    Level.WARNING,
    "Status and resolution say the same. Where they differ, lists and people go by different ones.",
    example="**Status** `open` beside a section Resolution that says FIXED",
)
def contradiction(document: Document, context: Context) -> Iterator[Remark]:
    """Statuses that do not fit the outcome which the ticket states."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None or outcome is None or outcome in FITTING.get(status, set()):
        return
    yield Remark(_status_line(document), f"the status is {status}, the resolution {outcome}")


@rule(
    "folder",
    Level.WARNING,
    "A ticket in a folder that is called after an outcome, such as fixed/, is not open any more.",
    example="**Status** `open` in tickets/fixed/B1-PT-01.md",
)
def folder(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets that were moved to where the settled ones are."""
    status = status_of(document)
    if status not in UNSETTLED:
        return
    for name in PurePosixPath(document.path).parts[:-1]:
        if word_for(name, context.vocabulary.outcomes):
            yield Remark(_status_line(document), f"the status is {status}, the folder {name}")


def _status_line(document: Document) -> int:
    stated = document.status if isinstance(document, Ticket) else None
    return stated.span.line if stated else document.id.span.line


@rule(
    "missing-remediation",
    Level.NOTE,
    "An open ticket says how it will be measured, so that it can be closed by more than somebody's word.",
    example="**Status** `open` and no section `## Remediation`",
)
def missing_remediation(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets without a Remediation section."""
    if status_of(document) in UNSETTLED and document.remediation is None:
        yield Remark(document.id.span.line, "an open ticket without a section ## Remediation")


@rule(
    "closed-without-evidence",
    Level.NOTE,
    "A ticket that was closed as fixed has a measurement that shows it.",
    example="**Status** `closed`, resolution FIXED, and nothing under evidence/",
)
def closed_without_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets fixed by somebody's word."""
    fixed = status_of(document) is Status.FIXED or (
        status_of(document) is Status.CLOSED and outcome_of(document) in {Outcome.FIXED, None}
    )
    if fixed and _unreadable(document, context) is None and not context.measured(document):
        yield Remark(document.id.span.line, "closed as fixed, and no measurement shows it")


@rule(
    "unreadable-evidence",
    Level.ERROR,
    "A file under evidence/ is one that the tool has written; another one hides the verdict of its ticket.",
    example="a file under evidence/B7-PT-02/ cut off in the middle",
    bad_data=True,
)
def unreadable_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Evidence that is damaged or written by hand."""
    error = _unreadable(document, context)
    if error:
        yield Remark(document.id.span.line, f"{error.file}: {error.message}", error.hint)


def _unreadable(document: Document, context: Context) -> BadDataError | None:
    try:
        context.measured(document)
    except BadDataError as error:
        return error
    return None
