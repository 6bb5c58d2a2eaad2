"""The words that choose a set of tickets: read once into a small tree, then asked of every row."""

from __future__ import annotations

from finding_tickets.register.index import Row
from finding_tickets.register.query.choice import choose
from finding_tickets.register.query.facts import Facts, Lexicon
from finding_tickets.register.query.grammar import parse
from finding_tickets.register.query.tree import Query, QueryError

__all__ = ["Facts", "Lexicon", "Query", "QueryError", "choose", "parse", "select"]


def select(text: str, facts: Facts) -> list[Row]:
    """The rows of a register that a query means today.

    Raises:
        QueryError: The query cannot be read, or has a key or a value that does not exist.
    """
    return choose(parse(text, Lexicon(facts)), facts)
