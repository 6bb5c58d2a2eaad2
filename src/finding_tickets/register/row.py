"""One document in a line: what lists show and queries ask, in plain values that any store can hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.record import Field
    from finding_tickets.model.review import ImplementationReview
    from finding_tickets.model.ticket import Review, Ticket


@dataclass(frozen=True, slots=True)
class Row:
    """A document without its text; what it does not state is None, 0 or empty.

    Attributes:
        kind: ``finding`` or ``review``.
        path: The file, from the register's root.
        id: As the register spells it, in upper case.
        title: Without the words that only say what kind of document it is.
        severity: ``P0`` (worst) to ``P4``.
        status: The vocabulary's word.
        outcome: The vocabulary's word, by the metadata or else by the section Resolution.
        batch: The number of the batch.
        agent: Who found it.
        assignee: Who is to resolve it.
        domains: The parts of the code that it belongs to, each once.
        categories: Those that are ticked.
        files: Paths of its locations, each once.
        reviews: Pairs of the reviewer, if named, and the vocabulary's opinion, else the verdict as written.
        related: Pairs of an ID and the relationship, in the order of the document.
        created: The date as it is written.
        updated: The date as it is written.
        done: Items of the checklist that are ticked.
        undone: Items of the checklist that are not.
        verifier: The file that its Remediation section names; the usual one is not looked for.
        summary: The summary as it is written.
    """

    kind: str
    path: str
    id: str
    title: str
    severity: str | None = None
    status: str | None = None
    outcome: str | None = None
    batch: int | None = None
    agent: str | None = None
    assignee: str | None = None
    domains: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reviews: tuple[tuple[str | None, str], ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    created: str | None = None
    updated: str | None = None
    done: int = 0
    undone: int = 0
    verifier: str | None = None
    summary: str | None = None


def row_of(document: Document) -> Row:
    """The row of a document."""
    return _of_finding(document) if document.kind == "finding" else _of_review(document)


def _of_finding(ticket: Ticket) -> Row:
    from finding_tickets.register.disposition import outcome_of

    done = sum(item.done for item in ticket.checklist)
    outcome = outcome_of(ticket)
    severity = ticket.severity.value if ticket.severity else None
    status = ticket.status.value if ticket.status else None
    return Row(
        kind=ticket.kind,
        path=ticket.path,
        id=ticket.id.value,
        title=ticket.title.value,
        severity=severity.value if severity else None,
        status=status.value if status else None,
        outcome=outcome.value if outcome else None,
        batch=ticket.batch.value if ticket.batch else None,
        agent=_value(ticket.agent),
        assignee=_value(ticket.assignee),
        domains=_once(field.value for field in ticket.domains),
        categories=tuple(category.name for category in ticket.categories if category.ticked),
        files=_once(location.file for location in ticket.locations),
        reviews=tuple(map(_opinion, ticket.reviews)),
        related=tuple((relation.id, relation.relationship.value) for relation in ticket.related),
        created=_value(ticket.created),
        updated=_value(ticket.updated),
        done=done,
        undone=len(ticket.checklist) - done,
        verifier=ticket.remediation.verifier if ticket.remediation else None,
        summary=ticket.summary.raw if ticket.summary else None,
    )


def _of_review(review: ImplementationReview) -> Row:
    done = sum(item.done for item in review.checklist)
    stated = review.reviewer or review.verdict
    return Row(
        kind=review.kind,
        path=review.path,
        id=review.id.value,
        title=review.title.value,
        files=_once(location.file for location in review.locations),
        # It is itself the one review that there is.
        reviews=((_value(review.reviewer), _value(review.verdict) or ""),) if stated else (),
        created=_value(review.date),
        done=done,
        undone=len(review.checklist) - done,
        verifier=review.remediation.verifier if review.remediation else None,
    )


def _opinion(review: Review) -> tuple[str | None, str]:
    return _value(review.reviewer), review.opinion.value if review.opinion else review.verdict.value


def _value(field: Field[str] | None) -> str | None:
    return field.value if field else None


def _once(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
