"""Metadata between two lines of dashes at the top of a file."""

from __future__ import annotations

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Ticket

TICKET = b"""\
---
ticket_id: B1-PT-09
title: 'It waits'
severity: "P2"
status: open  # since yesterday
domains: [agent, telemetry]
created: 2024-12-27
related:
  - B1-PT-02
  - B1-PT-03
---

# Finding Ticket: It waits

## Location

`src/a.py:3`
"""


def read(data: bytes) -> Ticket:
    """The ticket in ``data``, which has no problem."""
    document, problems = read_document(data, "a.md")
    assert isinstance(document, Ticket)
    assert () == problems
    return document


@pytest.mark.parametrize(
    "data",
    [TICKET, TICKET.replace(b"\n", b"\r\n"), TICKET.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + TICKET],
)
def test_metadata(data: bytes) -> None:
    """Keys in any spelling of their words, values with and without quotes, comments and lists."""
    ticket = read(data)
    assert ticket.severity
    assert ticket.status
    assert ticket.created
    assert ("B1-PT-09", "P2", "open", "2024-12-27") == (
        ticket.id.value,
        ticket.severity.value,
        ticket.status.value,
        ticket.created.value,
    )
    assert ["agent", "telemetry"] == [domain.value for domain in ticket.domains]
    assert ["B1-PT-02", "B1-PT-03"] == [relation.id for relation in ticket.related]
    assert ["src/a.py"] == [place.file for place in ticket.locations]


@pytest.mark.parametrize(
    "data",
    [
        b"---\n\n# Title\n\n---\n",
        b"---\nwords without a key\n---\n",
        b"# Title\n\n---\na: b\n---\n",
        b"---\na: b\n\nnever ended\n",
    ],
)
def test_what_is_no_front_matter(data: bytes) -> None:
    """A rule, text between rules, and what has no end are Markdown from the first byte on."""
    document, _ = read_document(data, "A-1.md")
    assert document
    assert {} == document.metadata
