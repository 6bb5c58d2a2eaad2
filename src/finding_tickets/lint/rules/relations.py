"""Rules about how tickets relate to one another."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.lint.rules.rule import Context, Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Relation, Ticket
from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.disposition import differ, disposition, status_of
from finding_tickets.register.index import outcome_of


@rule("dangling-relation", Level.WARNING, of=Ticket)
def dangling(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Relations to IDs that no ticket has."""
    if ticket.code_repository is not None:
        return
    for relation in ticket.related:
        if not context.named(relation.id):
            message = f"{relation.id} is not in this register"
            yield Remark(relation.span, message, context.suggestion(relation.id))


@rule("one-way-relation", Level.NOTE, of=Ticket)
def one_way(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Relations to tickets that do not answer them; a review, which has no list of relations, need not."""
    own = ticket.id.value
    for relation in ticket.related:
        # A review has no list of relations in which it could answer.
        others = context.named(relation.id)
        answered = own.casefold() in context.related_to(relation.id)
        if all(isinstance(other, Ticket) for other in others) and others and not answered:
            word = CONVERSE[relation.relationship]
            hint = f"tickets relate {own} {relation.id} --as {relation.relationship} adds it there as {word}"
            yield Remark(relation.span, f"{relation.id} does not name {own} in return", hint)


@rule("self-relation", Level.WARNING, of=Ticket)
def self_relation(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Relations of a ticket to its own ID."""
    for relation in ticket.related:
        if relation.id.casefold() == ticket.id.value.casefold():
            yield Remark(relation.span, f"{relation.id} relates to itself")


@rule("repeated-relation", Level.NOTE, of=Ticket)
def repeated_relation(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Second mentions of a ticket in a list of relations."""
    first: dict[str, Relation] = {}
    for relation in ticket.related:
        before = first.setdefault(relation.id.casefold(), relation)
        if before is not relation:
            yield Remark(relation.span, f"{relation.id} is also named on line {before.span.line}")


@rule("duplicates-differ", Level.WARNING, of=Ticket)
def duplicates_differ(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Relations to duplicates that people decided about differently."""
    for relation in ticket.related:
        if relation.relationship is not Relationship.DUPLICATE:
            continue
        for other in context.named(relation.id):
            if not isinstance(other, Ticket) or other is ticket:
                continue
            if differ((status_of(ticket), outcome_of(ticket)), (status_of(other), outcome_of(other))):
                both = f"{disposition(ticket)}, its duplicate {relation.id} {disposition(other)}"
                yield Remark(relation.span, f"this ticket is {both}")


@rule("blocking-cycle", Level.WARNING, of=Ticket)
def blocking_cycle(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Relations that are part of a circle of tickets, each of which is to be fixed before the next one."""
    own = ticket.id.value.casefold()
    for relation in ticket.related:
        blocks = relation.relationship in {Relationship.BLOCKS, Relationship.BLOCKED_BY}
        if blocks and relation.id.casefold() != own:
            circle = context.circles.get(own)
            if circle is not None and circle == context.circles.get(relation.id.casefold()):
                message = f"{ticket.id.value} and {relation.id} block one another in a circle"
                yield Remark(relation.span, message)
