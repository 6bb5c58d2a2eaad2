"""Rules about the dates of a ticket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Field
from finding_tickets.model.ticket import Ticket

_LENGTH = len("2025-06-01")


@rule(
    "date-form",
    Level.NOTE,
    "A date is written YYYY-MM-DD: others cannot be sorted, and 03/04 is a different day here and there.",
    wrong="| **Created** | 03/04/2026 |",
    right="| **Created** | 2026-04-03 |",
)
def date_form(document: Document, context: Context) -> Iterator[Remark]:
    """Created and Updated in another form, or no day at all; a time after the day is fine."""
    for field in _dates(document):
        if day_of(field) is None:
            yield Remark(field.span, f"{field.value!r} is no date", "write YYYY-MM-DD")


@rule(
    "date-order",
    Level.WARNING,
    "A ticket is updated after it was created; where not, one of the two dates is a slip.",
    wrong="| **Created** | 2026-05-12 |\n| **Updated** | 2026-05-02 |",
    right="| **Created** | 2026-05-12 |\n| **Updated** | 2026-05-20 |",
)
def date_order(document: Document, context: Context) -> Iterator[Remark]:
    """Updates from before the creation."""
    if not isinstance(document, Ticket) or not (document.created and document.updated):
        return
    created, updated = day_of(document.created), day_of(document.updated)
    if created and updated and updated < created:
        yield Remark(document.updated.span, f"updated on {updated}, before it was created on {created}")


@rule(
    "created-before-history",
    Level.WARNING,
    "A ticket is not older than the code it is about: a date before the repository's first commit is a slip, "
    "often last year's number. A row Code Repository says that the code is older and lives elsewhere. A "
    "shallow clone does not know when its repository began, and nothing is said.",
    wrong="| **Created** | 2024-12-27 |",
    right="| **Created** | 2025-12-27 |",
)
def created_before_history(document: Document, context: Context) -> Iterator[Remark]:
    """Tickets created before the first commit (in the examples: 2025-12-01); git is asked once, if at all."""
    if not isinstance(document, Ticket) or document.created is None or document.code_repository:
        return
    created = day_of(document.created)
    if created and context.first_commit and created < context.first_commit:
        yield Remark(
            document.created.span,
            f"created on {created}, before the repository's first commit on {context.first_commit}",
        )


def day_of(field: Field[str]) -> date | None:
    """The day that a field begins with, or None."""
    try:
        return date.fromisoformat(field.value[:_LENGTH])
    except ValueError:
        return None


def _dates(document: Document) -> list[Field[str]]:
    if not isinstance(document, Ticket):
        return []
    return [field for field in (document.created, document.updated) if field]
