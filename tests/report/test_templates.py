"""Values in a report cannot break its tables, and templates come with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.report.templates import cell, render


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a | b", "a \\| b"), ("a\nb", "a b"), ("a \\| b", "a \\\\\\| b"), (4, "4"), ("  ", "")],
)
def test_a_cell_stays_one_cell(value: object, expected: str) -> None:
    """Pipes and backslashes are escaped, lines joined."""
    assert expected == cell(value)


def test_a_template_of_the_tool_is_found_from_anywhere(tmp_path: Path) -> None:
    """Without a folder of one's own, the tool's templates serve."""
    assert "def nan_flags" in render("fix.py.j2", {"id": "B1-PT-01"}, tmp_path / "none")
