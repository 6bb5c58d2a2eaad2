"""Choosing rows by a query, in the order that it asks for."""

from __future__ import annotations

from finding_tickets.register.index import Row
from finding_tickets.register.query.facts import Facts
from finding_tickets.register.query.sorting import SORTS, by
from finding_tickets.register.query.tree import Query


def choose(query: Query, facts: Facts) -> list[Row]:
    """The rows that a query means, in the register's order unless it asks for another.

    Rows of a query that names nothing but IDs come in the order in which it names them.
    """
    chosen = [row for row in facts.rows if query.tree.holds(row)]
    if query.named:
        chosen.sort(key=lambda row: query.named.index(row.id.casefold()))
    for sort in reversed(query.sorting):
        chosen = by(chosen, SORTS[sort.key](facts), backwards=sort.backwards)
    return chosen
