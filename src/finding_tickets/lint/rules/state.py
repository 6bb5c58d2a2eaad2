"""Rules about what people decided: status, resolution and severity, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.lint.rules.rule import LEAST_LIKENESS, Context, Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Span
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Relationship, Status, Verdict, squeeze, word_for
from finding_tickets.register.disposition import UNSETTLED, filed_as, is_fixed, status_of
from finding_tickets.register.index import outcome_of

FITTING = {
    Status.CLOSED: set(Outcome),
    Status.FIXED: {Outcome.FIXED},
    Status.WONT_FIX: {Outcome.WONT_FIX, Outcome.ACCEPTABLE, Outcome.DUPLICATE},
    Status.INVALID: {Outcome.NOT_A_BUG, Outcome.DUPLICATE},
}
# Folders of open tickets that are not called after a status of the register.
OPEN_FOLDERS = frozenset(["todo", "backlog", "inbox", "active"])


@rule("contradiction", Level.WARNING)
def contradiction(document: Document, context: Context) -> Iterator[Remark]:
    """Statuses that do not fit the outcome which the ticket states."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None or outcome is None or outcome in FITTING.get(status, set()):
        return
    resolution = document.resolution if isinstance(document, Ticket) else None
    # An outcome that was recommended when the ticket was filed decides nothing.
    if not (resolution and resolution.proposed and "Resolution" not in document.metadata):
        yield Remark(_status(document), f"the status is {status}, the resolution {outcome}")


@rule("folder", Level.WARNING)
def folder(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets in a folder that says something else than they do."""
    status, outcome = status_of(document), outcome_of(document)
    if status is None:
        return
    for name in PurePosixPath(document.path).parts[:-1]:
        wanted = word_for(name, context.vocabulary.outcomes)
        meant = word_for(name, context.vocabulary.statuses)
        if wanted:
            settled = True
        elif squeeze(name) in OPEN_FOLDERS:
            settled = False
        elif meant is None:
            continue
        else:
            settled = meant not in UNSETTLED
        if settled is (status in UNSETTLED):
            yield Remark(_status(document), f"the status is {status}, the folder {name}")
        elif wanted and outcome and (wanted == Outcome.FIXED) is not (outcome is Outcome.FIXED):
            yield Remark(_status(document), f"the ticket is {outcome}, the folder {name}")


@rule("closed-without-outcome", Level.WARNING, of=Ticket)
def closed_without_outcome(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Closed tickets without a resolution, unless their folder is called after an outcome."""
    if status_of(ticket) is not Status.CLOSED or outcome_of(ticket) is not None or ticket.resolution:
        return
    if filed_as(ticket.path, context.vocabulary) is None:
        hint = "add a section ## Resolution with **Status:** and one of " + ", ".join(Outcome)
        yield Remark(_status(ticket), "the ticket is closed, but does not say how it ended", hint)


@rule("closed-without-evidence", Level.WARNING)
def closed_without_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets that are fixed by somebody's word alone."""
    if not any(item.done for item in document.checklist) and _verdict_of_fixed(document, context) is None:
        message = "closed as fixed, but nothing is ticked and nothing was measured"
        hint = f"tickets verify {document.id.value}, or tick what was checked"
        yield Remark(_status(document), message, hint)


@rule("fixed-but-refuted", Level.WARNING)
def fixed_but_refuted(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets closed as fixed whose last recorded verdict is failed or refuted."""
    verdict = _verdict_of_fixed(document, context)
    if verdict in {Verdict.FAILED, Verdict.REFUTED}:
        hint = f"tickets verify {document.id.value} measures again"
        yield Remark(_status(document), f"closed as fixed, but the last measurement says {verdict}", hint)


@rule("done-but-open", Level.NOTE)
def done_but_open(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets with a ticked checklist."""
    status, items = status_of(document), document.checklist
    if status in UNSETTLED and items and all(item.done for item in items):
        yield Remark(_status(document), f"the status is {status}, and every item is ticked")


@rule("severity-changed", Level.WARNING, of=Ticket)
def severity_changed(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """The last severity that the text states, where the metadata has another one."""
    if not ticket.severity_changes or ticket.severity is None:
        return
    last, stated = ticket.severity_changes[-1], ticket.severity.value
    if stated is not None and last.revised is not stated:
        message = f"the severity is {last.revised} here and {stated} in the metadata"
        yield Remark(last.span, message, f"tickets set {ticket.id.value} severity={last.revised}")


@rule("duplicate-of-nothing", Level.WARNING, of=Ticket)
def duplicate_of_nothing(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Duplicates that name no other ticket as such."""
    if outcome_of(ticket) is not Outcome.DUPLICATE:
        return
    stated = ticket.resolution and ticket.resolution.duplicate_of
    if not stated and all(each.relationship is not Relationship.DUPLICATE for each in ticket.related):
        hint = "add it to the related findings as duplicate"
        yield Remark(
            _status(ticket), "closed as a duplicate, but the ticket that it duplicates is not named", hint
        )


@rule("missing-remediation", Level.NOTE)
def missing_remediation(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets without a Remediation section; one that is not understood was reported."""
    if status_of(document) not in UNSETTLED or document.remediation or not context.understood(document):
        return
    hint = "tickets new --with-verifier writes a ticket that has one"
    for section in document.sections:
        # A misspelt Remediation; Verification is not.
        if get_close_matches(section.title.casefold(), ["remediation"], cutoff=LEAST_LIKENESS):
            hint = f"did you mean line {section.heading.line}: {section.title}?"
            break
    yield Remark(document.id.span, "an open ticket without a section ## Remediation", hint)


@rule("unreadable-evidence", Level.ERROR, bad_data=True)
def unreadable_evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Evidence that is damaged or written by hand."""
    try:
        context.verdict(document)
    except BadDataError as error:
        yield Remark(document.id.span, f"{error.file}: {error.message}", error.hint)


def _verdict_of_fixed(document: Document, context: Context) -> str | None:
    """The recorded verdict of a ticket that is closed as fixed, None where there is none.

    Of any other ticket, and of one whose evidence another rule finds unreadable, it is not looked at.
    """
    filed = filed_as(document.path, context.vocabulary)
    if not is_fixed(status_of(document), outcome_of(document), filed):
        return Verdict.STALE
    try:
        return context.verdict(document)
    except BadDataError:
        return Verdict.STALE


def _status(document: Document) -> Span:
    stated = document.status if isinstance(document, Ticket) else None
    return stated.span if stated else document.id.span
