"""Every metric is defined, and the page of metrics has what the code says."""

from __future__ import annotations

from pathlib import Path

from finding_tickets.claims.definitions import DEFINITIONS, table
from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.model.remediation import SAME_RESULT

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_every_metric_is_defined() -> None:
    """What a claim may name has a definition, and nothing else has, in the same order."""
    assert [name for name in CLAIMABLE if name != SAME_RESULT] == list(DEFINITIONS)


def test_the_page_has_the_table() -> None:
    """The table of docs/metrics.md is what ``python -m finding_tickets.claims.definitions`` prints."""
    assert table() in PAGE.read_text(encoding="utf-8")
