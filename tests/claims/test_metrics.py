"""Every metric is defined, and the page of metrics has what the code says."""

from __future__ import annotations

from pathlib import Path

from finding_tickets.claims.metrics import CLAIMABLE, METRICS, table
from finding_tickets.model.vocabulary import SAME_RESULT

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_what_is_not_counted_may_be_claimed_too() -> None:
    """Beside the metrics that are counted, a claim may be about equal results."""
    assert [SAME_RESULT] == [name for name in CLAIMABLE if name not in METRICS]


def test_the_page_has_the_table() -> None:
    """The table of docs/metrics.md is what ``python -m finding_tickets.claims.metrics`` prints."""
    assert table() in PAGE.read_text(encoding="utf-8")
