"""Rules between sections, and the text right above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.documents.conftest import Finding


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


def test_an_underlined_title_is_a_title(finding: Finding) -> None:
    """As many dashes as letters underline a title."""
    reading = finding("Cross-Review (DRL)\n------------------\n\n**Verdict:** OBJECT\n\nNo.\n")
    assert ["OBJECT"] == [review.opinion for review in reading.ticket.reviews]
    assert [] == reading.rules
