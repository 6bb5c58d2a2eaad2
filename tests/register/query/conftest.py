"""A register of rows made by hand, without a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import CurrentVerdict

TODAY = date(2025, 3, 1)


class Watched(Register):
    """Rows whose text is their title and whose verdict is ``refuted``; ``asked`` lists what was looked up."""

    def __init__(self, rows: list[Entry], config: Config) -> None:
        super().__init__(Path("/nowhere"), config, rows)
        self.today = TODAY
        self.asked: list[str] = []

    def text(self, row: Entry) -> str:
        """The title in lower case."""
        self.asked.append(f"text of {row.id}")
        return row.title.lower()

    def measured(self, document: object) -> CurrentVerdict:
        """Refuted."""
        assert isinstance(document, Entry)
        self.asked.append(f"verdict of {document.id}")
        return CurrentVerdict(Verdict.REFUTED)


def row(document_id: str, **values: object) -> Entry:
    """A finding with these values."""
    given = {"kind": "finding", "path": f"tickets/{document_id}.md", "id": document_id, "title": "It waits"}
    return Entry(**{**given, **values})  # type: ignore[arg-type] # each test names the fields that it needs


Words = Callable[..., Watched]


@pytest.fixture
def words() -> Words:
    """``words(row("A-1"), row("A-2"))``: the words that a query may use in a register of these rows."""

    def make(*rows: Entry, config: Config | None = None) -> Watched:
        return Watched(list(rows), config or Config())

    return make
