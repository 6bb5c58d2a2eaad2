"""What each column of a list shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.model.verdict import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.index import Row
from finding_tickets.register.query import Facts
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.columns import COLUMNS, DEFAULT

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

    def measured(self, _: Row) -> CurrentVerdict:
        """The same for every row."""
        return CurrentVerdict(Verdict.FAILED, disagreement="cuda: failed, simulated: verified")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column(name: str) -> None:
    """Several values stand side by side, 0 is a value, and meters that disagree are named."""
    assert CELLS[name] == COLUMNS[name](ROW, Disputed(Path(), Config(), [ROW]))


@pytest.mark.parametrize("name", sorted({*COLUMNS} - {"id", "kind", "path", "title", "verdict"}))
def test_what_is_not_stated_is_empty(name: str) -> None:
    """A document without anything has empty cells: no None, no 0/0."""
    bare = Row(kind="review", path="b.md", id="B-1", title="Nothing")
    assert "" == COLUMNS[name](bare, Facts(Path(), Config(), [bare]))


def test_a_list_needs_no_more_than_the_verdict_by_default() -> None:
    """The default columns exist."""
    assert [] == [name for name in DEFAULT if name not in COLUMNS]
