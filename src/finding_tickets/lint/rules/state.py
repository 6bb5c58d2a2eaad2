"""Rules about what people decided: status, resolution and severity, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.lint.worktree import LEAST_LIKENESS
from finding_tickets.model.ticket import Span, Ticket
from finding_tickets.model.vocabulary import (
    UNSETTLED,
    Level,
    Outcome,
    Relationship,
    Status,
    Verdict,
)
from finding_tickets.register.disposition import (
    contradicted_folder,
    is_fixed,
    status_of,
)
from finding_tickets.register.entries import outcome_of

FITTING = {
    Status.CLOSED: set(Outcome),
    Status.FIXED: {Outcome.FIXED},
    Status.WONT_FIX: {Outcome.WONT_FIX, Outcome.ACCEPTABLE, Outcome.DUPLICATE},
    Status.INVALID: {Outcome.NOT_A_BUG, Outcome.DUPLICATE},
}


@check(
    Rule("contradiction", Level.WARNING), Rule("done-but-open", Level.NOTE), of=Ticket
)
def contradictory_status(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find statuses that fit neither the outcome that the ticket states nor its checklist."""
    status, outcome, items = status_of(ticket), outcome_of(ticket), ticket.checklist
    # An outcome that was recommended when the ticket was filed decides nothing.
    proposed = (
        ticket.resolution
        and ticket.resolution.proposed
        and "Resolution" not in ticket.metadata
    )
    if (
        status
        and outcome
        and outcome not in FITTING.get(status, set())
        and not proposed
    ):
        yield Remark(
            "contradiction",
            _status(ticket),
            f"the status is {status}, the resolution {outcome}",
        )
    if status in UNSETTLED and items and all(item.done for item in items):
        message = f"the status is {status}, and every item is ticked"
        yield Remark("done-but-open", _status(ticket), message)


@check(
    Rule("closed-without-outcome", Level.WARNING),
    Rule("duplicate-of-nothing", Level.WARNING),
    of=Ticket,
)
def incomplete_closing(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find closed tickets that do not say how they ended, or which ticket they repeat."""
    status, outcome, resolution = (
        status_of(ticket),
        outcome_of(ticket),
        ticket.resolution,
    )
    if status is Status.CLOSED and not (outcome or resolution):
        hint = "add a section ## Resolution with **Status:** and one of " + ", ".join(
            Outcome
        )
        message = "the ticket is closed, but does not say how it ended"
        yield Remark("closed-without-outcome", _status(ticket), message, hint)
    named = any(each.relationship is Relationship.DUPLICATE for each in ticket.related)
    if (
        outcome is Outcome.DUPLICATE
        and not named
        and not (resolution and resolution.duplicate_of)
    ):
        message = (
            "closed as a duplicate, but the ticket that it duplicates is not named"
        )
        hint = "add it to the related findings as duplicate"
        yield Remark("duplicate-of-nothing", _status(ticket), message, hint)


@check(Rule("folder", Level.WARNING), of=Ticket)
def folder(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find tickets in a folder that contradicts them."""
    if said := contradicted_folder(ticket, context.vocabulary):
        yield Remark("folder", _status(ticket), f"{said[0]}, the folder {said[1]}")


@check(
    Rule("closed-without-evidence", Level.WARNING),
    Rule("fixed-but-refuted", Level.WARNING),
)
def evidence(document: Document, context: Context) -> Iterator[Remark]:
    """Check tickets that were closed as fixed without a measurement, or against one."""
    verdict = context.verdict(document)
    if not is_fixed(status_of(document), outcome_of(document)):
        return
    if verdict is None and not any(item.done for item in document.checklist):
        message = "closed as fixed, but nothing is ticked and nothing was measured"
        hint = f"tickets verify {document.id.value}, or tick what was checked"
        yield Remark("closed-without-evidence", _status(document), message, hint)
    elif verdict in {Verdict.FAILED, Verdict.REFUTED}:
        message = f"closed as fixed, but the last measurement says {verdict}"
        hint = f"tickets verify {document.id.value} measures again"
        yield Remark("fixed-but-refuted", _status(document), message, hint)


@check(Rule("severity-changed", Level.WARNING), of=Ticket)
def severity_changed(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find the last severity of the text where the metadata has a different one."""
    last = ticket.severity_changes[-1] if ticket.severity_changes else None
    stated = ticket.severity.value if ticket.severity else None
    if last and stated and last.revised is not stated:
        message = f"the severity is {last.revised} here and {stated} in the metadata"
        hint = f"tickets set {ticket.id.value} severity={last.revised}"
        yield Remark("severity-changed", last.span, message, hint)


@check(Rule("missing-remediation", Level.NOTE), of=Ticket)
def missing_remediation(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find open tickets without a Remediation section; one that is not understood was reported."""
    if (
        status_of(ticket) not in UNSETTLED
        or ticket.remediation
        or not context.understood(ticket)
    ):
        return
    hint = "tickets new --with-verifier writes a ticket that has one"
    for section in ticket.sections:
        # A misspelt Remediation; Verification is not.
        if get_close_matches(
            section.title.casefold(), ["remediation"], cutoff=LEAST_LIKENESS
        ):
            hint = f"did you mean line {section.heading.line}: {section.title}?"
            break
    message = "an open ticket without a section ## Remediation"
    yield Remark("missing-remediation", ticket.id.span, message, hint)


def _status(document: Document) -> Span:
    stated = document.status if isinstance(document, Ticket) else None
    return stated.span if stated else document.id.span
