"""Rules about how tickets relate to one another."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Relationship
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import Remark, rule

CONVERSE = {
    Relationship.RELATED: "related",
    Relationship.DUPLICATE: "duplicate",
    Relationship.BLOCKS: "blocked-by",
    Relationship.BLOCKED_BY: "blocks",
}


@rule(
    "dangling-relation",
    Level.WARNING,
    "A related ticket exists in the register, unless a metadata row Code Repository says that the ticket's "
    "context lives elsewhere.",
    example="- B7-PT-99: same trade-off",
)
def dangling(document: Document, context: Context) -> Iterator[Remark]:
    """Relations to IDs that no document has."""
    if not isinstance(document, Ticket) or document.code_repository is not None:
        return
    for relation in document.related:
        if not context.named(relation.id):
            yield Remark(
                relation.span.line, f"{relation.id} is not in this register", context.suggestion(relation.id)
            )


@rule(
    "one-way-relation",
    Level.NOTE,
    "A relation is stated by both tickets, so that whoever reads either one learns of the other.",
    example="B7-PT-02 names B7-PT-03, which does not name B7-PT-02",
)
def one_way(document: Document, context: Context) -> Iterator[Remark]:
    """Relations to tickets that do not answer them."""
    if not isinstance(document, Ticket):
        return
    for relation in document.related:
        others = context.named(relation.id)
        if others and not any(_names(other, document.id.value) for other in others):
            yield Remark(
                relation.span.line,
                f"{relation.id} does not name {document.id.value} in return",
                f"add it there as {CONVERSE[relation.relationship]}",
            )


def _names(other: Document, document_id: str) -> bool:
    """Whether a document names an ID; a review, which has no list of relations, need not."""
    if not isinstance(other, Ticket):
        return True
    return any(relation.id.casefold() == document_id.casefold() for relation in other.related)


@rule(
    "self-relation",
    Level.WARNING,
    "A ticket does not relate to itself; such a line usually means another ID.",
    example="- B7-PT-02 in the related findings of B7-PT-02",
)
def self_relation(document: Document, context: Context) -> Iterator[Remark]:
    """Relations of a ticket to its own ID."""
    if not isinstance(document, Ticket):
        return
    for relation in document.related:
        if relation.id.casefold() == document.id.value.casefold():
            yield Remark(relation.span.line, f"{relation.id} relates to itself")
