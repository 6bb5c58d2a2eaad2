"""No input raises; what cannot be read is named with its file and line."""

from __future__ import annotations

import random

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.vocabulary import Level

TICKET = b"""\
# Finding Ticket: It waits

| Field | Value |
|---|---|
| **Ticket ID** | `A-1` |
| **Severity** | `P2` |

## Location

| Field | Value |
|---|---|
| **File(s)** | `a.py`, `b.py` |
| **Line(s)** | a.py: 1-2, b.py: 3 |

## Related Findings

- A-2: the same

## Cross-Review

| Verdict | Reviewer | Domain |
|---|---|---|
| **OBJECT** | DRL | RL |

**DRL Evaluation:** No.

## Resolution

### Status: FIXED

## Remediation

```yaml
claims:
  found:
    syncs: [1, {is: 2, at: {n: 1}}]
```
"""
FRAGMENTS = [
    b"|",
    b"`",
    b"**",
    b"\n",
    b"\r\n",
    b"# ",
    b"## ",
    b"- [x] ",
    b"```",
    b"---\n",
    b"> ",
    b"    ",
    b"<!--",
]
FRAGMENTS += [
    b"{",
    b"[",
    b": ",
    b"\\",
    "\u00e9\u2028".encode(),
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"**Verdict:** ",
]


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


def test_mutations() -> None:
    """Five hundred broken versions of a ticket are read without an exception; problems lie in the file."""
    chance = random.Random(20260101)  # noqa: S311 - reproducible, not secret
    for _ in range(500):
        data = bytearray(TICKET)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 0, 1, 30])] = chance.choice(FRAGMENTS)
        document, problems = read_document(bytes(data), "a.md")
        lines = data.count(b"\n") + data.count(b"\r") + 1
        assert [] == [problem for problem in problems if not 1 <= problem.line <= lines]
        assert document or problems


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
