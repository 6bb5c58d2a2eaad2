"""Tables keep what Markdown would drop, and what is malformed is reported."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding

VERDICTS = "## Cross-Review\n\n| Agent | Verdict | Evaluation |\n|-------|---------|------------|\n"


def test_a_pipe_in_a_cell(finding: Finding) -> None:
    """A pipe splits a cell even in backticks; the rest stays part of the last cell, which is reported."""
    reading = finding(VERDICTS + "| DRL | ENDORSE | the norm `|g|` of each |\n")
    [review] = reading.ticket.reviews
    assert review.evaluation
    assert "the norm `|g|` of each" == review.evaluation.raw
    # The section's heading is on line 5, the table's header on 7, the rule on 8, the row on 9.
    assert [("table-cells", 9)] == reading.rules


def test_a_line_right_below_a_table(finding: Finding) -> None:
    """Markdown makes it a row; it is read as the text that it is, and reported."""
    reading = finding(
        "## Cross-Review (DRL)\n\n| Field | Value |\n|---|---|\n| **Verdict** | `REFINE` |\n"
        "**Evaluation:** Nearly.\n"
    )
    [review] = reading.ticket.reviews
    assert review.evaluation
    assert ("REFINE", "Nearly.") == (review.verdict.value, review.evaluation.raw)
    # Heading 5, table header 7, rule 8, verdict 9, the line below it 10.
    assert [("table-text", 10)] == reading.rules


@pytest.mark.parametrize(
    ("table", "line"),
    [
        # The section's heading stands on line 5, so its text begins on line 7.
        ("| Field | Value |\n| **Status** | `open` |\n", 7),
        ("Some text\n  | Field | Value |  \n| **Status** | `open` |\n", 8),
        ("| one |\n\n| Field | Value |  \n| **Status** | `open` |\n| a | b |\n", 9),
        # The delimiter row has fewer cells than the header.
        ("| a | b |\n|---|\n| c | d |\n", 7),
    ],
)
def test_rows_without_a_delimiter_row_are_reported(finding: Finding, table: str, line: int) -> None:
    """What looks like a table and is none would lose its values in silence."""
    assert [("table-delimiter", line)] == finding(f"## Notes\n\n{table}").rules


@pytest.mark.parametrize("text", ["| one |\n", "|a| is\n|b|\n", "```\n| a |\n| b |\n```\n", "|\n|\n"])
def test_text_with_pipes_is_text(finding: Finding, text: str) -> None:
    """One line, a formula and code are no rows."""
    assert [] == finding(f"## Notes\n\n{text}").rules


CLAIMS = "## Resolution\n\n| Claim | Status | Evidence |\n|---|---|---|\n"


def test_a_pipe_in_a_cell_before_the_last(finding: Finding) -> None:
    """Where all pipes but those in backticks make the right number of cells, these are the cells."""
    reading = finding(f"{CLAIMS}| `a | b` | TRUE | `c | d` |\n")
    assert [("a | b", True, "c | d")] == [
        (each.claim, each.holds, each.evidence) for each in reading.ticket.checked_claims
    ]
    # Heading 5, table header 7, rule 8, row 9; the first pipe too many is behind 17 characters.
    assert [("table-cells", 9, 18)] == [
        (each.rule, each.line, each.column) for each in reading.problems if each.rule == "table-cells"
    ]


def test_pipes_that_fit_no_header(finding: Finding) -> None:
    """Where the pipes outside backticks are too many as well, what is left over stays in the last cell."""
    [claim] = finding(f"{CLAIMS}| a | TRUE | b | c |\n").ticket.checked_claims
    assert ("a", "b | c") == (claim.claim, claim.evidence)
