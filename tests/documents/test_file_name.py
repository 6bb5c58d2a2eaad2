"""The older flat form: an ID and a severity in the file's name, and labelled items instead of sections."""

from __future__ import annotations

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Ticket

FLAT = """\
# BUG-013: It waits in every step

- **Context:** the update loop
- **Status:** Open
- **Location:** `src/agent/loop.py:10-20`
- **Observed Behaviour:** One wait for each parameter.
- **Fix Plan:** Wait once.
- **Validation Plan:**
  - [ ] Count the waits
  - [x] Run the tests
- **Related:** BUG-011, BUG-012
"""


def read(text: str, path: str) -> tuple[Ticket, list[str]]:
    """The ticket in ``text`` and the rules of its problems."""
    document, problems = read_document(text.encode(), path)
    assert isinstance(document, Ticket)
    return document, [problem.rule for problem in problems]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("bugs/BUG-013-P2-loop-waits-often.md", ("BUG-013", "P2", ["loop"])),
        ("BUG-013-P2-waits.md", ("BUG-013", "P2", [])),
        ("bug_13_p0_loop_waits.md", ("BUG-13", "P0", ["loop"])),
        ("BUG-013.md", ("BUG-013", None, [])),
        ("B11-TELEM-01-waits.md", ("B11-TELEM-01", None, [])),
        ("notes.md", ("NOTES", None, [])),
    ],
)
def test_parts_of_a_name(path: str, expected: tuple[str, str | None, list[str]]) -> None:
    """An ID, then a severity, then a domain where something follows it; what is not there is not stated."""
    ticket, _ = read("# Finding Ticket: It waits\n\n**Status:** open\n", path)
    severity = ticket.severity.value if ticket.severity else None
    assert expected == (ticket.id.value, severity, [domain.value for domain in ticket.domains])


def test_a_flat_ticket() -> None:
    """The labelled items say what the sections of another ticket do."""
    ticket, rules = read(FLAT, "bugs/BUG-013-P2-loop-waits.md")
    assert ticket.severity
    assert ticket.status
    assert ticket.summary
    assert ticket.recommended_fix
    assert ("BUG-013", "It waits in every step") == (ticket.id.value, ticket.title.value)
    assert ("P2", "open") == (ticket.severity.value, ticket.status.value)
    assert ["loop"] == [domain.value for domain in ticket.domains]
    assert [("src/agent/loop.py", 10, 20)] == [
        (place.file, place.lines[0].first, place.lines[0].last) for place in ticket.locations
    ]
    assert ("One wait for each parameter.", "Wait once.") == (ticket.summary.raw, ticket.recommended_fix.raw)
    assert [("Count the waits", False), ("Run the tests", True)] == [
        (item.text, item.done) for item in ticket.checklist
    ]
    assert ["BUG-011", "BUG-012"] == [relation.id for relation in ticket.related]
    assert [] == rules


def test_a_ticket_without_a_heading() -> None:
    """Labelled items alone make a ticket of a file with such a name."""
    ticket, rules = read("- **Title:** It waits\n- **Status:** Resolved\n", "BUG-013-P2-waits.md")
    assert ("BUG-013", "It waits") == (ticket.id.value, ticket.title.value)
    assert [] == rules
