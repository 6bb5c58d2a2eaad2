"""Documents as plain values: what a ticket says of its own end."""

from __future__ import annotations

from finding_tickets.documents.reading import read_document
from finding_tickets.model.verdict import Verdict
from finding_tickets.report.entries import Entry
from finding_tickets.report.export import Item, full_item, ticket_item

TICKET = b"""\
# Finding Ticket: It waits

**Ticket ID:** B1-PT-01
**Severity:** P3 (was P1)

## Cross-Review: DRL

| Verdict | Evaluation |
|---|---|
| NEUTRAL | Rarely. |

**Recommendation:** Wait.

## Resolution

**Status:** Won't Fix (duplicate of B1-PT-02)
**Closed:** 2024-12-28

| Claim | Status | Evidence |
|---|---|---|
| it waits | TRUE | `a.py:3` |

## Correction

**Status:** It does not wait.
"""


def item(data: bytes) -> Item:
    """Everything known of the ticket in ``data``."""
    document, _ = read_document(data, "a.md")
    assert document
    return full_item(Entry(document, Verdict.UNVERIFIED))


def test_what_was_done() -> None:
    """The values of the record, without the places that they were read from."""
    found = item(TICKET)
    assert ("2024-12-28", False, "B1-PT-02") == (found["closed"], found["proposed"], found["duplicate_of"])
    assert [{"original": "P1", "revised": "P3"}] == found["severity_changes"]
    assert [{"claim": "it waits", "holds": True, "status": "TRUE", "evidence": "a.py:3"}] == found[
        "checked_claims"
    ]
    assert [{"title": "Correction", "date": None, "statement": "It does not wait."}] == found["corrections"]


def test_nothing_was_done() -> None:
    """A ticket that says nothing of its end, and a review, have the same keys."""
    ticket = item(b"# Finding Ticket: t\n\n**Ticket ID:** A-1\n")
    review = item(b"# Task 1 Implementation Review: t\n")
    assert set(ticket) == set(review)
    assert (None, None, None, []) == (
        ticket["closed"],
        ticket["proposed"],
        review["proposed"],
        ticket["corrections"],
    )


def test_all_that_a_reviewer_writes() -> None:
    """The evaluation of a list's item has the remarks beside it too."""
    document, _ = read_document(TICKET, "a.md")
    assert document
    assert [
        {"reviewer": "drl", "verdict": "NEUTRAL", "evaluation": "Rarely.\n\n**Recommendation:** Wait."}
    ] == ticket_item(Entry(document, Verdict.UNVERIFIED))["reviews"]
