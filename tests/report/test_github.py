"""Annotations and summaries for GitHub's workflows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import ROWS, report, row

from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.formats.github import annotation, summary
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.text import STEERING

ROOM = 1024**2


def test_a_summary_counts_and_lists() -> None:
    """The table of verdicts, and the open work with the next step."""
    page = summary(report([row("T-1", "a | <b> *c*"), row("T-2", status="fixed")]), ROOM)
    assert page.startswith("## Tickets: 2 chosen by `a query`\n")
    assert "| sum | 2 | 2 |" in page
    assert (
        "| T-1 | P2 | unverified | a \\| \\<b> \\*c\\* | fix it, or decide to keep the code as it is |\n"
        in page
    )
    assert "T-2" not in page


def test_a_summary_fits() -> None:
    """The worst are listed as far as there is room, and the rest is counted."""
    rows = [row(f"T-{number}", "é" * 200, severity="P4") for number in range(2500)]
    page = summary(report([*rows, row("T-X", severity="P0")]), ROOM)
    assert ROOM - 2000 < len(page.encode()) <= ROOM
    shown = page.count("\n| T-")
    assert "\n| T-X | P0 |" in page
    assert f"\n{2501 - shown} more do not fit.\n" in page
    assert "" == summary(report(rows), 10)


@given(ROWS, st.integers(0, 2000))
def test_any_text_stays_within_its_bounds(rows: list[ReportRow], room: int) -> None:
    """Every line of a table has its cells, nothing steers a terminal, and the room is kept to."""
    page = summary(report(rows), room)
    assert not STEERING.search(page)
    assert len(page.encode(errors="backslashreplace")) <= room
    for line in page.split("\n"):
        if line.startswith("| ") and "### Open work" in page.partition(line)[0]:
            assert 6 == line.replace("\\|", "").count("|")


def test_what_has_a_meaning_is_escaped() -> None:
    """Per cent signs and line ends are escaped everywhere, commas and colons in properties as well."""
    problem = Problem(level=Level.ERROR, rule="folder", file="a,b:c%.md", line=1, message="50%: a,\n\rb")
    expected = "::error file=a%2Cb%3Ac%25.md,line=1,col=1,title=folder::50%25: a,%0A?b"
    assert expected == annotation(problem)


def test_a_long_message_is_cut() -> None:
    """GitHub takes 64 KB of a message; what it advises stays."""
    problem = Problem(level=Level.NOTE, rule="r", file="a.md", line=1, message="m" * 100_000, hint="do")
    assert f"::notice file=a.md,line=1,col=1,title=r::{'m' * 3_999}\u2026 (do)" == annotation(problem)
