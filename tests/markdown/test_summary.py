"""The summary and the categories, wherever they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.markdown.conftest import Finding


@pytest.mark.parametrize(
    "text",
    [
        "## Summary\n\n**One-line summary:** It waits.\n\n**Category:**\n- [x] Test coverage gap\n",
        "## Summary\n\nIt waits.\n\nFor long.\n",
        "## One-Line Summary\n\nIt waits.\n",
        "## Problem\n\nIt waits.\n",
        "## Summary\n\n## Problem\n\nIt waits.\n",
    ],
)
def test_summary(finding: Finding, text: str) -> None:
    """The labelled line, else the first paragraph of the section that says what is wrong."""
    summary = finding(text).ticket.summary
    assert summary
    assert "It waits." == summary.raw


def test_categories(finding: Finding) -> None:
    """Every category in order, ticked or not; check boxes elsewhere are none."""
    ticket = finding("## Summary\n\n- [ ] A\n- [X] B `c`\n\n## Context\n\n- [x] D\n").ticket
    assert [("A", False), ("B c", True)] == [(each.name, each.ticked) for each in ticket.categories]


def test_checklist(finding: Finding) -> None:
    """Items of the verification, nested ones and continued lines included; items without a box are none."""
    ticket = finding("## Verification\n\n- [ ] Count\n  the waits\n  - [x] twice\n- Update tests\n").ticket
    assert [("Count the waits", False), ("twice", True)] == [
        (each.text, each.done) for each in ticket.checklist
    ]


def test_a_loose_checklist(finding: Finding) -> None:
    """Empty lines between the items change nothing."""
    ticket = finding("## Verification\n\n- [ ] One\n\n- [x] Two\n\n  in more words\n").ticket
    assert [("One", False), ("Two", True)] == [(each.text, each.done) for each in ticket.checklist]


def test_code(finding: Finding) -> None:
    """Code of the description is evidence, with its language and the place its first comment names."""
    ticket = finding(
        "## Detailed Description\n\n```python\n# src/a.py:3-5\nx.item()\n```\n\n"
        "## Recommended Fix\n\n```python\ny\n```\n"
    ).ticket
    assert [("python", "# src/a.py:3-5\nx.item()\n", "src/a.py:3-5")] == [
        (block.language, block.code, block.location) for block in ticket.evidence
    ]
