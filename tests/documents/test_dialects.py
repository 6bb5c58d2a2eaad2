"""Tickets as other people write them: the same facts in other forms, read and edited in place."""

from __future__ import annotations

from datetime import date

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Severity, Vocabulary
from finding_tickets.register.actions import DocumentEdit, set_key

WORDS = Vocabulary(severities={"P1": ("high",), "P2": ("medium",), "P3": ()})
DIALECTS = {
    "front matter": """\
---
id: F-1
title: >-
  The loader
  leaks
severity: high  # agreed
state: OPEN
assignees: ["ann"]
created_at: 2024-11-03T09:12:44Z
closed_at: null
locations:
  - file: src/loader.py
    lines: 10-20
---

Each restart leaks.
""",
    "an issue from a terminal": """\
title:\tThe loader leaks
state:\tOPEN
key:\tF-1
assignees:\tann
created_at:\t2024-11-03T09:12:44Z
--
Each restart leaks.

**Severity**: High
**File**: `src/loader.py:10-20`
""",
    "bold labels": """\
# F-1 | The loader leaks

**Severity:** \N{LARGE RED CIRCLE} High
**State:** Open
**Assigned to:** ann
**Reported on:** 2024-11-03T09:12:44Z
**Location:** [loader](https://github.com/a/b/blob/4f1c2d0/src/loader.py#L10-L20)

Each restart leaks.
""",
    "bare labels": """\
# [F-1] The loader leaks

Severity: High
Status: Open
Version: 1.3
Assignee: ann
Created: 2024-11-03T09:12:44Z
File: src/loader.py, lines 10-20

Each restart leaks.
""",
    "a quotation": """\
## \N{BUG} F-1: The loader leaks

> \N{LARGE RED CIRCLE} **Severity:** High | **File:** `src/loader.py:10-20` | **Status:** Open
> **Assignee:** ann
> **Created:** 2024-11-03T09:12:44Z

Each restart leaks.
""",
    "a table of two columns": """\
# The loader leaks

| Key | F-1 |
|---|---|
| Priority | High |
| State | Open |
| Assigned | ann |
| Date reported | 2024-11-03T09:12:44Z |
| Affected files | src/loader.py |
| Affected lines | 10-20 |

Each restart leaks.
""",
    "sections": """\
# F-1: The loader leaks

Date: 2024-11-03T09:12:44Z

Each restart leaks.

## Severity

High

## Status: Open

## Assignee

ann

## Lines of code

`src/loader.py` lines 10-20
""",
}


@pytest.fixture(params=DIALECTS)
def text(request: pytest.FixtureRequest) -> str:
    """The same ticket in each of the dialects."""
    return DIALECTS[request.param]


def test_the_same_ticket(text: str) -> None:
    """ID, title, severity, status, assignee, date, place and summary are read in each form."""
    ticket, problems = read_document(text.encode(), "f-1-loader.md", WORDS)
    assert isinstance(ticket, Ticket)
    assert () == problems
    fields = (ticket.severity, ticket.status, ticket.assignee, ticket.created)
    assert ["P1", "open", "ann", "2024-11-03T09:12:44Z"] == [field and field.value for field in fields]
    assert ("F-1", "The loader leaks") == (ticket.id.value, ticket.title.value)
    assert [("src/loader.py", [(10, 20)])] == [
        (place.file, [(each.first, each.last) for each in place.lines]) for place in ticket.locations
    ]
    assert ticket.summary
    assert "Each restart leaks." == ticket.summary.raw
    assert ticket.closed is None


def test_a_value_is_set_where_it_stands(text: str) -> None:
    """An edit replaces the value under its own label; no second row appears, and no other line changes."""
    edit = DocumentEdit(text.encode(), "f-1-loader.md", WORDS, date(2026, 1, 1))
    set_key("severity", ["P3"])(edit)
    set_key("status", ["investigating"])(edit)
    set_key("assignee", ["zoe"])(edit)
    after = edit.page.data.decode().splitlines()
    before = text.splitlines()
    assert len(before) == len(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert all(word in " ".join(new for _, new in changed) for word in ("P3", "investigating", "zoe"))
    assert isinstance(edit.document, Ticket)
    assert edit.document.severity
    assert Severity.P3 == edit.document.severity.value


@pytest.mark.parametrize("text", ["# Priority\n\n## Severity\n\nIt says how bad it is.\n\nP1 is worse.\n"])
def test_a_section_that_says_more_is_no_value(text: str) -> None:
    """A page about severities is no ticket."""
    assert read_document(text.encode(), "guide.md", WORDS)[0] is None
