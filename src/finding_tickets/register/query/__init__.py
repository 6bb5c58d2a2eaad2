"""The words that choose a set of tickets: read once into a small tree, then asked of every row."""

from __future__ import annotations

from datetime import date, datetime

from finding_tickets.register.query.choice import choose
from finding_tickets.register.query.facts import Facts, Measured
from finding_tickets.register.query.grammar import parse
from finding_tickets.register.query.lexicon import Lexicon
from finding_tickets.register.query.tree import Query, QueryError
from finding_tickets.register.row import Row

__all__ = ["Facts", "Lexicon", "Measured", "Query", "QueryError", "choose", "parse", "select"]


def select(text: str, facts: Facts, today: date | None = None) -> list[Row]:
    """The rows of a register that a query means, on the day that it is by default.

    Raises:
        QueryError: The query cannot be read, or has a key or a value that does not exist.
    """
    day = today or datetime.now().astimezone().date()
    return choose(parse(text, Lexicon(facts, day)), facts)
