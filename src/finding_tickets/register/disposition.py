"""Decisions about a document: status and outcome, and the transitions between statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import UNSETTLED, Outcome, Status, Vocabulary
from finding_tickets.register.entries import Entry, outcome_of

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Ticket

DISPOSITIONS = tuple(
    dict.fromkeys(
        [*(status.value for status in Status), *(outcome.value for outcome in Outcome)]
    )
)
UNDECIDED = "not stated"
# What a ticket can be closed as, and the status that it has then.
SETTLED_AS: Mapping[Outcome, Status] = {
    Outcome.FIXED: Status.FIXED,
    Outcome.WONT_FIX: Status.WONT_FIX,
    Outcome.NOT_A_BUG: Status.CLOSED,
    Outcome.DUPLICATE: Status.CLOSED,
}

# Only work in progress can be in review; any other unsettled status may change into any other.
_WORK: Mapping[Status | None, tuple[Status, ...]] = {
    None: (Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS, Status.IN_REVIEW),
    Status.OPEN: (Status.INVESTIGATING, Status.IN_PROGRESS),
    Status.INVESTIGATING: (Status.OPEN, Status.IN_PROGRESS),
    Status.IN_PROGRESS: (Status.OPEN, Status.INVESTIGATING, Status.IN_REVIEW),
    Status.IN_REVIEW: (Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS),
}
_SETTLED = (Status.CLOSED, Status.FIXED, Status.WONT_FIX, Status.INVALID)

# For each status (None: not stated, or none of the vocabulary) the statuses that each command leads to.
TRANSITIONS: Mapping[Status | None, Mapping[str, tuple[Status, ...]]] = {
    **{
        status: {"set": following, "close": tuple(dict.fromkeys(SETTLED_AS.values()))}
        for status, following in _WORK.items()
    },
    **{status: {"set": (Status.OPEN,)} for status in _SETTLED},
}


def status_of(document: Document) -> Status | None:
    """Return the status of a finding; None for a review or an unknown status."""
    field = document.status if document.kind == "finding" else None
    return field.value if field else None


def disposition(document: Document) -> str:
    """The status, or for one that is merely closed the outcome, if the ticket states it."""
    return disposed(status_of(document), outcome_of(document))


def differ(
    one: tuple[str | None, str | None], other: tuple[str | None, str | None]
) -> bool:
    """Return True if two duplicates, given by status and outcome, ended differently.

    They do not where one is closed as the duplicate of the other, or is not understood.
    """
    statuses, outcomes = zip(one, other, strict=True)
    if None in statuses or Outcome.DUPLICATE in outcomes:
        return False
    open_ones = [status in UNSETTLED for status in statuses]
    if open_ones[0] != open_ones[1]:
        return True
    return not open_ones[0] and None not in outcomes and outcomes[0] != outcomes[1]


def is_fixed(status: str | None, outcome: str | None) -> bool:
    """Return True for the status fixed, or for a closed ticket with the outcome fixed."""
    return status == Status.FIXED or (
        status == Status.CLOSED and outcome == Outcome.FIXED
    )


def disposed(status: str | None, outcome: str | None) -> str:
    """The disposition by the vocabulary's words for status and outcome."""
    if status == Status.CLOSED and outcome:
        return outcome
    return status or UNDECIDED


def disposition_text(row: Entry) -> str:
    """Status and outcome of a row, and whether one is its folder's: ``closed · fixed (by its folder)``."""
    # A ticket may be resolved by the word that is its status.
    words = " · ".join(
        word for word in dict.fromkeys((row.status, row.outcome)) if word
    )
    return f"{words} (by its folder)" if row.filed else words


def contradicted_folder(
    ticket: Ticket, vocabulary: Vocabulary
) -> tuple[str, str] | None:
    """Return the status of a ticket and the folder that contradicts it; None if they agree.

    What was not fixed may be told apart as invalid or not: the folder of either will do.
    """
    filed, status, outcome = (
        vocabulary.folder_of(ticket.path),
        status_of(ticket),
        outcome_of(ticket),
    )
    if filed is None or status is None:
        return None
    name, said = filed
    if (said in UNSETTLED) != (status in UNSETTLED):
        return f"the status is {status}", name
    # "Closed" leaves the outcome open, "invalid" does not.
    is_decided = said in {*Outcome, Status.INVALID}
    if outcome and is_decided and (outcome is Outcome.FIXED) != (said == Outcome.FIXED):
        return f"the ticket is {outcome}", name
    return None


def check_transition(current: Status | None, command: str, wanted: Status) -> None:
    """Refuse what the states do not allow; the hint names what they do."""
    ways = TRANSITIONS[current]
    if wanted in ways.get(command, ()):
        return
    said = f"{current or 'no status'} cannot become {wanted} by tickets {command}"
    hint = f"tickets set status={' or '.join(ways['set'])}"
    if "close" in ways:
        hint += "; tickets close"
    raise UsageError(
        f"it is {wanted} already" if current is wanted else said, hint=hint
    )
