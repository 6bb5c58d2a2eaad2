"""The words that choose a set of tickets: read once into a small tree, then asked of every row."""

from __future__ import annotations

from finding_tickets.register.index import Row
from finding_tickets.register.query.facts import Facts, Lexicon
from finding_tickets.register.query.keys import SORTS
from finding_tickets.register.query.parser import parse
from finding_tickets.register.query.tree import Query, QueryError

__all__ = ["Facts", "Lexicon", "Query", "QueryError", "choose", "parse", "select"]


def select(text: str, facts: Facts) -> list[Row]:
    """The rows of a register that a query means today.

    Raises:
        QueryError: The query cannot be read, or has a key or a value that does not exist.
    """
    return choose(parse(text, Lexicon(facts)), facts)


def choose(query: Query, facts: Facts) -> list[Row]:
    """The rows that a query means, in the register's order unless it asks for another.

    Rows of a query that names nothing but IDs come in the order in which it names them. Rows that do not
    state what they are sorted by come last either way.
    """
    chosen = [row for row in facts.rows if query.tree.holds(row)]
    if query.named:
        chosen.sort(key=lambda row: query.named.index(row.id.casefold()))
    for sort in reversed(query.sorting):
        key = SORTS[sort.key](facts)
        keyed = [(key(row), row) for row in chosen]
        stated = [pair for pair in keyed if pair[0] is not None]
        stated.sort(key=lambda pair: pair[0], reverse=sort.backwards)
        chosen = [row for _, row in stated] + [row for value, row in keyed if value is None]
    return chosen
