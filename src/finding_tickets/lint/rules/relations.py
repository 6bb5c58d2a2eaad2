"""Rules about how tickets relate to one another."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Relation, Ticket
from finding_tickets.model.vocabulary import CONVERSE, Outcome, Relationship, Status
from finding_tickets.register.disposition import differ, disposition, outcome_of, status_of

_ONE, _TWO = "tickets/B1-PT-01.md", "tickets/B1-PT-02.md"
_DUPLICATES = {
    _ONE: "| **Status** | `invalid` |\n\n## Related Findings\n\n- B1-PT-02 (duplicate): the same wait",
    _TWO: "## Related Findings\n\n- B1-PT-01 (duplicate): the same wait",
}


@rule(
    "dangling-relation",
    Level.WARNING,
    "A related ticket exists in the register, unless a metadata row Code Repository says that the ticket's "
    "context lives elsewhere.",
    wrong="## Related Findings\n\n- B7-PT-99: the same trade-off",
    right="## Related Findings\n\nNone.",
)
def dangling(document: Document, context: Context) -> Iterator[Remark]:
    """Relations to IDs that no document has."""
    if not isinstance(document, Ticket) or document.code_repository is not None:
        return
    for relation in document.related:
        if not context.named(relation.id):
            yield Remark(
                relation.span, f"{relation.id} is not in this register", context.suggestion(relation.id)
            )


@rule(
    "one-way-relation",
    Level.NOTE,
    "A relation is stated by both tickets, so that whoever reads either one learns of the other.",
    wrong={_ONE: "## Related Findings\n\n- B1-PT-02: the same loop", _TWO: "## Related Findings\n\nNone."},
    right={
        _ONE: "## Related Findings\n\n- B1-PT-02: the same loop",
        _TWO: "## Related Findings\n\n- B1-PT-01: the same loop",
    },
)
def one_way(document: Document, context: Context) -> Iterator[Remark]:
    """Relations to tickets that do not answer them; a review, which has no list of relations, need not."""
    if not isinstance(document, Ticket):
        return
    own = document.id.value
    for relation in document.related:
        others = context.named(relation.id)
        answered = own.casefold() in context.related_to(relation.id)
        if all(isinstance(other, Ticket) for other in others) and others and not answered:
            word = CONVERSE[relation.relationship]
            hint = f"tickets relate {own} {relation.id} --as {relation.relationship} adds it there as {word}"
            yield Remark(relation.span, f"{relation.id} does not name {own} in return", hint)


@rule(
    "self-relation",
    Level.WARNING,
    "A ticket does not relate to itself; such a line usually means another ID.",
    wrong="## Related Findings\n\n- B1-PT-01: the same loop",
    right={
        _ONE: "## Related Findings\n\n- B1-PT-02: the same loop",
        _TWO: "## Related Findings\n\n- B1-PT-01: the same loop",
    },
)
def self_relation(document: Document, context: Context) -> Iterator[Remark]:
    """Relations of a ticket to its own ID."""
    if not isinstance(document, Ticket):
        return
    for relation in document.related:
        if relation.id.casefold() == document.id.value.casefold():
            yield Remark(relation.span, f"{relation.id} relates to itself")


@rule(
    "repeated-relation",
    Level.NOTE,
    "A related ticket is named once, in one way; of two ways, nobody knows which one is meant.",
    wrong={
        _ONE: "## Related Findings\n\n- B1-PT-02 (blocks): it waits first\n- B1-PT-02: the same loop",
        _TWO: "## Related Findings\n\n- B1-PT-01 (blocked-by): it waits first",
    },
    right={
        _ONE: "## Related Findings\n\n- B1-PT-02 (blocks): it waits first, in the same loop",
        _TWO: "## Related Findings\n\n- B1-PT-01 (blocked-by): it waits first",
    },
)
def repeated_relation(document: Document, context: Context) -> Iterator[Remark]:
    """Second mentions of a ticket in a list of relations."""
    if not isinstance(document, Ticket):
        return
    first: dict[str, Relation] = {}
    for relation in document.related:
        before = first.setdefault(relation.id.casefold(), relation)
        if before is not relation:
            yield Remark(relation.span, f"{relation.id} is also named on line {before.span.line}")


@rule(
    "duplicates-differ",
    Level.WARNING,
    "Two tickets about the same thing end the same way: both open or both settled, and then alike, unless "
    "one is closed as the duplicate of the other.",
    wrong={
        **_DUPLICATES,
        _ONE: _DUPLICATES[_ONE].replace("invalid", "wont-fix"),
        _TWO: "| **Status** | `invalid` |\n\n" + _DUPLICATES[_TWO],
    },
    right={**_DUPLICATES, _TWO: "| **Status** | `invalid` |\n\n" + _DUPLICATES[_TWO]},
)
def duplicates_differ(document: Document, context: Context) -> Iterator[Remark]:
    """Relations to duplicates that people decided about differently."""
    if not isinstance(document, Ticket):
        return
    for relation in document.related:
        if relation.relationship is not Relationship.DUPLICATE:
            continue
        for other in context.named(relation.id):
            if (
                isinstance(other, Ticket)
                and other is not document
                and differ(_ended(document), _ended(other))
            ):
                both = f"{disposition(document)}, its duplicate {relation.id} {disposition(other)}"
                yield Remark(relation.span, f"this ticket is {both}")


def _ended(ticket: Ticket) -> tuple[Status | None, Outcome | None]:
    return status_of(ticket), outcome_of(ticket)


@rule(
    "blocking-cycle",
    Level.WARNING,
    "Tickets do not block one another in a circle, for then none of them could ever be fixed first.",
    wrong={
        _ONE: "## Related Findings\n\n- B1-PT-02 (blocks): it waits first",
        _TWO: "## Related Findings\n\n- B1-PT-01 (blocks): it waits first",
    },
    right={
        _ONE: "## Related Findings\n\n- B1-PT-02 (blocks): it waits first",
        _TWO: "## Related Findings\n\n- B1-PT-01 (blocked-by): it waits first",
    },
)
def blocking_cycle(document: Document, context: Context) -> Iterator[Remark]:
    """Relations that are part of a circle of tickets, each of which is to be fixed before the next one."""
    if not isinstance(document, Ticket):
        return
    own = document.id.value.casefold()
    for relation in document.related:
        if relation.relationship in _BLOCKING and relation.id.casefold() != own:
            circle = context.circles.get(own)
            if circle is not None and circle == context.circles.get(relation.id.casefold()):
                yield Remark(
                    relation.span, f"{document.id.value} and {relation.id} block one another in a circle"
                )


_BLOCKING = (Relationship.BLOCKS, Relationship.BLOCKED_BY)
