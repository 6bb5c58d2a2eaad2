"""What people decided about a document: status, outcome, and both in one word."""

from __future__ import annotations

from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Status

Document = Ticket | ImplementationReview

UNSETTLED = frozenset({Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS, Status.IN_REVIEW})
DISPOSITIONS = tuple(
    dict.fromkeys([*(status.value for status in Status), *(outcome.value for outcome in Outcome)])
)
UNDECIDED = "not stated"


def status_of(document: Document) -> Status | None:
    """Where a finding stands; None for a review and where it is not understood."""
    field = document.status if isinstance(document, Ticket) else None
    return field.value if field else None


def outcome_of(document: Document) -> Outcome | None:
    """How a finding was resolved: by its metadata, else by its section Resolution."""
    if not isinstance(document, Ticket):
        return None
    if document.outcome and document.outcome.value:
        return document.outcome.value
    return document.resolution.outcome if document.resolution else None


def disposition(document: Document) -> str:
    """The status, or for one that is merely closed the outcome, if the ticket states it."""
    return disposed(status_of(document), outcome_of(document))


def disposed(status: str | None, outcome: str | None) -> str:
    """The disposition by the vocabulary's words for status and outcome."""
    if status == Status.CLOSED and outcome:
        return outcome
    return status or UNDECIDED
