"""The words that choose a set of tickets: a text becomes one condition, which is then asked of every row."""

from __future__ import annotations

from finding_tickets.register.index import Row
from finding_tickets.register.query.facts import Facts
from finding_tickets.register.query.keys import Query, QueryError
from finding_tickets.register.query.parser import parse

__all__ = ["Facts", "Query", "QueryError", "parse", "select"]


def select(text: str, facts: Facts) -> list[Row]:
    """The rows of a register that a query means today.

    Raises:
        QueryError: The query cannot be read, or has a key or a value that does not exist.
    """
    return parse(text, facts).choose(facts.rows)
