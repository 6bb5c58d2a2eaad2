"""What the rows of a query are sorted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Severity, Status
from finding_tickets.register.identifiers import natural
from finding_tickets.register.index import Row
from finding_tickets.register.query.dates import date_in
from finding_tickets.register.query.facts import Facts

By = Callable[[Row], Any]
"""What of a row is compared: anything with an order, or None where the document does not state it."""

SORTS: Mapping[str, Callable[[Facts], By]] = {
    "id": lambda _: lambda row: natural(row.id),
    "path": lambda _: lambda row: row.path,
    "title": lambda _: lambda row: row.title.casefold(),
    "severity": lambda _: _place(lambda row: row.severity, Severity),
    "status": lambda _: _place(lambda row: row.status, Status),
    "verdict": lambda facts: _place(facts.verdict, Verdict),
    "batch": lambda _: lambda row: row.batch,
    "agent": lambda _: lambda row: row.agent and row.agent.casefold(),
    "assignee": lambda _: lambda row: row.assignee and row.assignee.casefold(),
    "created": lambda _: lambda row: date_in(row.created),
    "updated": lambda _: lambda row: date_in(row.updated),
    "done": lambda _: lambda row: row.done,
    "undone": lambda _: lambda row: row.undone,
}
"""Severities come from the worst, statuses in the order of a ticket's life, verdicts as documented."""


def _place(get: Callable[[Row], str | None], words: Iterable[str]) -> By:
    """The place of a word in the order of its vocabulary."""
    places = {word: number for number, word in enumerate(words)}
    return lambda row: None if (word := get(row)) is None else places[word]


def by(rows: Iterable[Row], key: By, *, backwards: bool) -> list[Row]:
    """Rows in the order of ``key``, equal ones as they were; those without it come last either way."""
    keyed = [(key(row), row) for row in rows]
    stated = [pair for pair in keyed if pair[0] is not None]
    stated.sort(key=lambda pair: pair[0], reverse=backwards)
    return [row for _, row in stated] + [row for value, row in keyed if value is None]
