"""Reading takes time in proportion to the input, whatever stands in it."""

from __future__ import annotations

import gc
import time

import pytest

from finding_tickets.documents import source
from finding_tickets.documents.reading import read_document

TICKET = """# Finding Ticket: it waits

## Ticket Metadata

| Field | Value |
|-------|-------|
| **Ticket ID** | `A-1` |
| **Status** | `{status}` |

**Location:** `{location}`
**Section:{label}

## Cross-Review (DRL){heading}

{review}

## Description

{text}

## Remediation

```yaml
claims: {{found: {{syncs: {claim}}}}}
{yaml}
```
"""
# What is repeated, and where: each was quadratic once, or is in a Markdown or YAML parser somewhere.
KINDS: list[tuple[str, str]] = [
    ("text", "&#35;"),
    ("text", "&amp;"),
    ("text", "\\*"),
    ("text", "*a **b "),
    ("text", "["),
    ("text", "[a]("),
    ("text", "![a]["),
    ("text", "`a ``b "),
    ("text", "<a b='"),
    ("text", "<!--"),
    ("text", "> "),
    ("text", "- a\n"),
    ("text", "# a\n"),
    ("text", "| a | b |\n|---|---|\n"),
    ("text", "a|b\n"),
    ("text", "[a]: b\n"),
    ("text", "~~"),
    ("heading", ")- "),
    ("heading", "_"),
    ("heading", "\u2192"),
    ("heading", "1"),
    ("label", "  "),
    ("label", ": "),
    ("status", "-"),
    ("status", "(a "),
    ("location", "\t"),
    ("location", "a.py:1, "),
    ("location", "a."),
    ("review", "- ENDORSE - "),
    ("review", "| A | ENDORSE |\n"),
    ("claim", "("),
    ("claim", "9"),
    ("claim", "1 + "),
    ("claim", "[1, "),
    ("yaml", "a: &a [*a, *a]\n"),
    ("yaml", "{a: "),
    ("yaml", "- &a 1\n"),
]
EMPTY = dict.fromkeys(("status", "location", "label", "heading", "review", "text", "claim", "yaml"), "")
SIZE = 24_000


def seconds(place: str, piece: str, size: int, *, runs: int = 2) -> float:
    """Processor time of reading a ticket that has so many bytes more at a place; the least of some runs."""
    data = TICKET.format(**{**EMPTY, place: piece * (size // len(piece.encode()))}).encode()
    found = []
    # As `timeit` does: a collection visits what the tests before this one left.
    gc.disable()
    try:
        for _ in range(runs):
            start = time.process_time()
            read_document(data, "tickets/A-1.md")
            found.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "piece"), KINDS, ids=[f"{place}-{piece!r}" for place, piece in KINDS])
def test_twice_as_much_takes_no_more_than_twice_as_long(place: str, piece: str) -> None:
    """What takes the square takes 4 times as long for twice of it; below 250 ms nothing is told."""
    if seconds(place, piece, 2 * SIZE, runs=1) >= 0.25:
        assert seconds(place, piece, 2 * SIZE) < 3 * seconds(place, piece, SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["&#35;", "- a\n", "# a\n", "> "])
def test_the_largest_file_is_read_within_seconds(piece: str) -> None:
    """A megabyte, the default of largest_file, of the shortest blocks that there are."""
    assert seconds("text", piece, 1 << 20, runs=1) < 60


def test_a_file_of_too_many_pieces_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even its beginning is read: a table that is cut off has rows without all of their cells."""
    monkeypatch.setattr(source, "MOST_PIECES", 200)
    # The header and each row have three cells of three pieces each.
    table = "## Location\n\n| File | Line | Why |\n|---|---|---|\n" + "| a.py | 1 | b |\n" * 100
    data = TICKET.format(**{**EMPTY, "text": table}).encode()
    document, problems = read_document(data, "tickets/A-1.md")
    assert (None, [("too-large", 1)]) == (document, [(each.rule, each.line) for each in problems])
