"""Finding tickets that consist of a title, an ID and the sections that a test is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Problem, Ticket
from finding_tickets.model.vocabulary import Vocabulary

HEAD = "# Finding Ticket: It waits\n\n**Ticket ID:** B1-PT-01\n\n"


@dataclass(frozen=True)
class Reading:
    """A ticket as it was read."""

    ticket: Ticket
    problems: tuple[Problem, ...]

    @property
    def rules(self) -> list[tuple[str, int]]:
        """Rule and line of every problem."""
        return [(problem.rule, problem.line) for problem in self.problems]


class Finding(Protocol):
    """Reads a ticket whose sections are the given text; it begins on line 5."""

    def __call__(self, sections: str, words: Vocabulary | None = None, /) -> Reading:
        """The ticket in the words of a register, by default the usual ones."""
        ...


@pytest.fixture
def finding() -> Finding:
    """What reads a ticket."""

    def read(sections: str, words: Vocabulary | None = None, /) -> Reading:
        document, problems = read_document((HEAD + sections).encode(), "tickets/B1-PT-01.md", words)
        assert isinstance(document, Ticket)
        return Reading(document, problems)

    return read
