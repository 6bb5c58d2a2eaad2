"""What the sections of a finding say: summary, categories, checklists, reports, and rules between them."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding


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


PLACES = {
    "# src/a.py:3-5": [("src/a.py", [(3, 5)])],
    "# /x/src/a.py:62-63, 93-104": [("/x/src/a.py", [(62, 63), (93, 104)])],
    "# a.py lines 76-85": [("a.py", [(76, 85)])],
    "# From a.py docstring (lines 21-37)": [("a.py", [(21, 37)])],
    "# Lines 667-683": [(None, [(667, 683)])],
    "# In f() - Lines 5-6 (alike)": [(None, [(5, 6)])],
    "// src/a.cu:7": [("src/a.cu", [(7, 7)])],
    "# src/a.py": [("src/a.py", [])],
    "# src/a.py:1\nx\n\n# src/b.py:2\ny": [("src/a.py", [(1, 1)]), ("src/b.py", [(2, 2)])],
    "x  # src/a.py:3": [],
    "# as b.py does": [],
    "# 3 lines more": [],
}


@pytest.mark.parametrize("code", PLACES)
def test_places_of_code(finding: Finding, code: str) -> None:
    """A comment on a line of its own names the place of what follows: a file, lines, or both."""
    [block] = finding(f"## Detailed Description\n\n```python\n{code}\n```\n").ticket.evidence
    assert PLACES[code] == [
        (place.file, [(lines.first, lines.last) for lines in place.lines]) for place in block.places
    ]


def test_code_in_a_list(finding: Finding) -> None:
    """A fence may stand inside an item; what it holds is code, whatever it looks like."""
    [block] = finding(
        "## Detailed Description\n\n1. See:\n   ```python\n   # src/a.py:3\n   ## Resolution\n   ```\n"
    ).ticket.evidence
    assert ("# src/a.py:3\n## Resolution\n", ["src/a.py"]) == (
        block.code,
        [place.file for place in block.places],
    )


def test_checks_of_what_was_done(finding: Finding) -> None:
    """Checks in a resolution, and below such a heading elsewhere, count; boxes in other text do not."""
    ticket = finding(
        "## Verification\n\n- [ ] one\n\n## Resolution\n\n**Status:** Fixed\n\n### Tests\n\n- [x] two\n\n"
        "## Recommended Fix\n\n- [ ] a step\n\n### Acceptance Criteria\n\n- [ ] three\n\n"
        "## System Context\n\n- [x] a principle\n"
    ).ticket
    assert [("one", False), ("two", True), ("three", False)] == [
        (each.text, each.done) for each in ticket.checklist
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('**Report file:** `a.md`\n**Section:** "One"\n', [("a.md", '"One"')]),
        (
            '**Report file:** `a.md`\n**Section:** "One"\n\n**Report file:** `b.md`\n**Section:** P2 (2)\n',
            [("a.md", '"One"'), ("b.md", "P2 (2)")],
        ),
        ("**Report file:** `a.md`\n", [("a.md", "")]),
        ("Report file: a.md\nSection: P2\n", [("a.md", "P2")]),
        ("**Source:** `a.md`\n**Section:** P2\n", [("a.md", "P2")]),
        ("See `docs/a.md` and `f()`.\n", [("docs/a.md", "")]),
        ("Nothing.\n", []),
    ],
)
def test_reports(finding: Finding, text: str, expected: list[tuple[str, str]]) -> None:
    """Files with their sections, in pairs or in a list."""
    ticket = finding(f"## Appendix\n\n### Original Report Reference\n\n{text}").ticket
    assert expected == [(link.file, link.section) for link in ticket.reports]


def test_text_right_above_a_rule(finding: Finding) -> None:
    """Markdown makes a heading of it; it is read as the text that it is, and reported."""
    reading = finding(
        "## Cross-Review (DRL)\n\n**Verdict:** OBJECT\n\n**Evaluation:** No,\nnever.\n---\n\n"
        "## Appendix\n\n**Report:** `a.md`\n---\n"
    )
    assert ["No,\nnever."] == [
        review.evaluation and review.evaluation.raw for review in reading.ticket.reviews
    ]
    assert ["a.md"] == [report.file for report in reading.ticket.reports]
    assert ["Cross-Review (DRL)", "Appendix"] == [section.title for section in reading.ticket.sections][1:]
    # Heading 5, verdict 7, evaluation 9 to 10, its rule 11, the appendix 13, the report 15.
    assert [("heading-rule", 9), ("heading-rule", 15)] == reading.rules
