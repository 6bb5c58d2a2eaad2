"""What each column of a list shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.model.verdict import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.query import Facts, Measured
from finding_tickets.register.row import Row
from finding_tickets.report.rows import DEFAULT_COLUMNS, LIST_COLUMNS, list_cells

ROW = Row(
    kind="finding",
    path="tickets/a.md",
    id="A-1",
    title="It waits",
    severity="P1",
    status="closed",
    outcome="fixed",
    batch=0,
    agent="drl",
    assignee="Kim",
    domains=("simic", "train/loop"),
    categories=("Numerical stability",),
    files=("a.py", "b.py"),
    reviews=(("drl", "OBJECT"), (None, "NEUTRAL")),
    related=(("A-2", "blocks"),),
    created="2025-01-01",
    updated="2025-02-01",
    done=1,
    undone=2,
    summary="It waits long.",
)
CELLS = {
    "id": "A-1",
    "kind": "finding",
    "severity": "P1",
    "status": "closed",
    "resolution": "fixed",
    "verdict": "failed (cuda: failed, simulated: verified)",
    "batch": "0",
    "agent": "drl",
    "assignee": "Kim",
    "domain": "simic, train/loop",
    "category": "Numerical stability",
    "file": "a.py, b.py",
    "reviewed-by": "drl=OBJECT, ?=NEUTRAL",
    "related": "A-2=blocks",
    "checklist": "1/3",
    "created": "2025-01-01",
    "updated": "2025-02-01",
    "path": "tickets/a.md",
    "summary": "It waits long.",
    "title": "It waits",
}


class Disputed(Facts):
    """A register with two meters that disagree."""

    def measured(self, _: Row) -> Measured:
        """The same for every row."""
        return Measured(Verdict.FAILED, disagreement="cuda: failed, simulated: verified")


@pytest.mark.parametrize("name", LIST_COLUMNS)
def test_a_column(name: str) -> None:
    """Several values stand side by side, 0 is a value, and meters that disagree are named."""
    assert CELLS[name] == list_cells(ROW, Disputed(Path(), Config(), [ROW]), [name])[0]


@pytest.mark.parametrize("name", sorted({*LIST_COLUMNS} - {"id", "kind", "path", "title", "verdict"}))
def test_what_is_not_stated_is_empty(name: str) -> None:
    """A document without anything has empty cells: no None, no 0/0."""
    bare = Row(kind="review", path="b.md", id="B-1", title="Nothing")
    assert "" == list_cells(bare, Facts(Path(), Config(), [bare]), [name])[0]


def test_a_list_needs_no_more_than_the_verdict_by_default() -> None:
    """The default columns exist."""
    assert [] == [name for name in DEFAULT_COLUMNS if name not in LIST_COLUMNS]
