"""The documents that one is related to, whichever of the two says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from finding_tickets.documents.reading import Document
from finding_tickets.model.ticket import Ticket
from finding_tickets.register.query import Facts
from finding_tickets.register.row import Row


@dataclass(frozen=True)
class Relative:
    """Another document, what the one would say of it, and the note that the one has on it.

    ``row`` and ``verdict`` are None where the register has no such document.
    """

    id: str
    relationship: str
    note: str | None
    row: Row | None
    verdict: str | None


def relatives(document: Document, facts: Facts) -> Iterator[Relative]:
    """Each document that this one names or that names it, once for each way in which they are related."""
    relations = document.related if isinstance(document, Ticket) else ()
    notes = {relation.id.casefold(): relation.note for relation in relations}
    for other, relationship in facts.relations.by_id.get(document.id.value.casefold(), ()):
        row = facts.relations.rows.get(other)
        verdict = facts.verdict(row) if row else None
        yield Relative(row.id if row else other.upper(), relationship, notes.get(other), row, verdict)
