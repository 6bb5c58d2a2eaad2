"""No input raises; what cannot be read is named with its file and line."""

from __future__ import annotations

import pytest
from tests.documents.mutations import ROOT

from finding_tickets.documents.reading import read_document
from finding_tickets.model.vocabulary import Level

TICKET = (ROOT / "tickets/B7-PT-02.md").read_bytes()


@pytest.mark.parametrize(
    ("data", "rule", "line"),
    [
        (b"", "empty-file", 1),
        (b" \n\t\n", "empty-file", 1),
        (b"# Ticket\n\nab\xffcd\n", "invalid-utf8", 3),
        (b"# Ticket\r\n\r\ncut \xc3", "invalid-utf8", 3),
        ("# Ticket\n".encode("utf-16"), "binary-file", 1),
        (b"\x7fELF\x02\x01\n\0", "binary-file", 2),
    ],
)
def test_unreadable(data: bytes, rule: str, line: int) -> None:
    """Bytes that are no text are one error at their place, and no document."""
    document, problems = read_document(data, "tickets/a.md")
    assert document is None
    assert [(rule, "tickets/a.md", line, Level.ERROR)] == [
        (problem.rule, problem.file, problem.line, problem.level) for problem in problems
    ]


@pytest.mark.parametrize(
    "text", ["# Tickets\n\nHow we work here.\n", "No heading.\n", "---\nlayout: page\n---\n"]
)
def test_another_document(text: str) -> None:
    """A file that is neither a finding nor a review is noted, never skipped in silence."""
    document, problems = read_document(text.encode(), "tickets/README.md")
    assert document is None
    assert [("not-a-document", Level.NOTE)] == [(problem.rule, problem.level) for problem in problems]


@pytest.mark.parametrize(
    "text", ["#\n\n**Ticket ID:** A-1\n", "**Ticket ID:** A-1\n", "**Severity:** P1\n##\n"]
)
def test_without_a_title(text: str) -> None:
    """A ticket without a title is a ticket; its file's name stands in for the title."""
    document, problems = read_document(text.encode(), "A-1.md")
    assert document
    assert ("A-1", "A-1") == (document.id.value, document.title.value)
    assert "title" in [problem.rule for problem in problems]


@pytest.mark.parametrize(
    "text",
    [
        "`" * 50_000,
        "**a" * 50_000,
        "> " * 50_000,
        "[" * 50_000,
        "| a |\n|---|\n" + "| b |\n" * 5_000,
        "## Cross-Review\n\n| Agent | Verdict |\n|---|---|\n" + "| DRL | OBJECT |\n" * 2_000,
        "## Location\n\n**File(s):** " + "a." * 50_000 + "\n**Line(s):** " + "1." * 50_000,
    ],
)
def test_large_input(text: str) -> None:
    """Input made to be slow is read in a moment; a quadratic scan of it would take minutes."""
    document, _ = read_document(TICKET + b"\n" + text.encode(), "a.md")
    assert document
