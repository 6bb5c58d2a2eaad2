"""Rules about how tickets relate to one another."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.lint.rules.rule import Context, Remark, Rule, check
from finding_tickets.model.ticket import Relation, Ticket
from finding_tickets.model.vocabulary import CONVERSE, Level, Relationship
from finding_tickets.register.disposition import differ, disposition, status_of
from finding_tickets.register.entries import outcome_of


@check(
    Rule("dangling-relation", Level.WARNING),
    Rule("self-relation", Level.WARNING),
    Rule("repeated-relation", Level.NOTE),
    Rule("one-way-relation", Level.NOTE),
    of=Ticket,
)
def lists_of_relations(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find relations to no ticket, to the ticket itself, for the second time, or not answered."""
    own = ticket.id.value
    first: dict[str, Relation] = {}
    for relation in ticket.related:
        name, others = relation.id, context.named(relation.id)
        # The tickets of code that lives elsewhere may live there, too.
        if not others and ticket.code_repository is None:
            message = f"{name} is not in this register"
            yield Remark(
                "dangling-relation", relation.span, message, context.suggestion(name)
            )
        if name.casefold() == own.casefold():
            yield Remark("self-relation", relation.span, f"{name} relates to itself")
        before = first.setdefault(name.casefold(), relation)
        if before is not relation:
            message = f"{name} is also named on line {before.span.line}"
            yield Remark("repeated-relation", relation.span, message)
        # A review has no list of relations in which it could answer.
        is_answered = (name.casefold(), own.casefold()) in context.related
        if (
            others
            and all(isinstance(other, Ticket) for other in others)
            and not is_answered
        ):
            hint = f"add {own} to its related findings, as {CONVERSE[relation.relationship]}"
            yield Remark(
                "one-way-relation",
                relation.span,
                f"{name} does not name {own} in return",
                hint,
            )


@check(Rule("duplicates-differ", Level.WARNING), of=Ticket)
def duplicates_differ(ticket: Ticket, context: Context) -> Iterator[Remark]:
    """Find relations to duplicates that people decided about differently."""
    for relation in ticket.related:
        others = (
            context.named(relation.id)
            if relation.relationship is Relationship.DUPLICATE
            else ()
        )
        for other in others:
            if not isinstance(other, Ticket) or other is ticket:
                continue
            if differ(
                (status_of(ticket), outcome_of(ticket)),
                (status_of(other), outcome_of(other)),
            ):
                both = f"{disposition(ticket)}, its duplicate {relation.id} {disposition(other)}"
                yield Remark(
                    "duplicates-differ", relation.span, f"this ticket is {both}"
                )
