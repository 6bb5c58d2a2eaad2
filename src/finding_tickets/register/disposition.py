"""What people decided about a document: status, outcome, and both in one word."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from finding_tickets.model.vocabulary import Outcome, Status, Vocabulary, word_for

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document

UNSETTLED = frozenset({Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS, Status.IN_REVIEW})
DISPOSITIONS = tuple(
    dict.fromkeys([*(status.value for status in Status), *(outcome.value for outcome in Outcome)])
)
UNDECIDED = "not stated"


def status_of(document: Document) -> Status | None:
    """Where a finding stands; None for a review and where it is not understood."""
    field = document.status if document.kind == "finding" else None
    return field.value if field else None


def outcome_of(document: Document) -> Outcome | None:
    """How a finding was resolved: by its metadata, else by its section Resolution."""
    if document.kind != "finding":
        return None
    if document.outcome and document.outcome.value:
        return document.outcome.value
    return document.resolution.outcome if document.resolution else None


def disposition(document: Document) -> str:
    """The status, or for one that is merely closed the outcome, if the ticket states it."""
    return disposed(status_of(document), outcome_of(document))


def differ(one: tuple[str | None, str | None], other: tuple[str | None, str | None]) -> bool:
    """Whether two duplicates, each by its status and outcome, ended differently.

    They do not where one is closed as the duplicate of the other, or is not understood.
    """
    statuses, outcomes = zip(one, other, strict=True)
    if None in statuses or Outcome.DUPLICATE in outcomes:
        return False
    open_ones = [status in UNSETTLED for status in statuses]
    if open_ones[0] != open_ones[1]:
        return True
    return not open_ones[0] and None not in outcomes and outcomes[0] != outcomes[1]


def is_fixed(status: str | None, outcome: str | None, filed: str | None) -> bool:
    """Whether people say that it was fixed: by status, outcome, or the folder of what is merely closed."""
    return status == Status.FIXED or (status == Status.CLOSED and (outcome or filed) == Outcome.FIXED)


def filed_as(path: str, vocabulary: Vocabulary) -> Outcome | None:
    """The outcome that a folder of a document's path is called after."""
    words = (word_for(name, vocabulary.outcomes) for name in PurePosixPath(path).parts[:-1])
    return next((Outcome(word) for word in words if word), None)


def disposed(status: str | None, outcome: str | None) -> str:
    """The disposition by the vocabulary's words for status and outcome."""
    if status == Status.CLOSED and outcome:
        return outcome
    return status or UNDECIDED
