"""Annotations and summaries for GitHub's workflows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import ROWS, claim, report, row

from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level, Verdict
from finding_tickets.report.formats.github import MOST, annotation, summary, write_report
from finding_tickets.report.rows import ReportRow

ROOM = 1024**2


def test_an_annotation_for_each_piece_of_open_work() -> None:
    """The level is that of the verdict, the place that of the ticket; what passed needs none."""
    rows = [
        row("T-1", "x", verdict=Verdict.FAILED, claims=[claim()], severity="P1"),
        row("T-2", "x", verdict=Verdict.VERIFIED, claims=[claim()]),
        row("T-3", "x"),
    ]
    first, second = "".join(write_report(report(rows))).splitlines()
    assert "::error file=tickets/T-1.md,line=1,col=1,title=T-1 failed::x. x (mend the fix: " in first
    assert second.startswith("::notice file=tickets/T-3.md,line=1,col=1,title=T-3 unverified::x. It was not")


def test_no_more_annotations_than_are_shown() -> None:
    """GitHub drops what is beyond its limit for each level; how many those are is said in one."""
    failed = [row(f"F-{number}", verdict=Verdict.FAILED, claims=[]) for number in range(MOST + 3)]
    lines = "".join(write_report(report([*failed, row("T-1")]))).splitlines()
    assert [MOST, 2] == [
        sum(line.startswith(f"::{level} ") for line in lines) + (level == "notice")
        for level in ("error", "notice")
    ]
    assert "::notice::3 more, of which GitHub shows no annotation" == lines[-1]


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
    rows = [row(f"T-{number}", "é" * 200, severity="P4") for number in range(5000)]
    page = summary(report([*rows, row("T-X", severity="P0")]), ROOM)
    assert ROOM - 2000 < len(page.encode()) <= ROOM
    shown = page.count("\n| T-")
    assert "\n| T-X | P0 |" in page
    assert f"\n{5001 - shown} more do not fit.\n" in page
    assert "" == summary(report(rows), 10)


@given(ROWS, st.integers(0, 2000))
def test_any_text_stays_within_its_bounds(rows: list[ReportRow], room: int) -> None:
    """Every line of the output is a command, every line of a table has its cells, and the room is kept to."""
    made = report(rows)
    assert all(line.startswith("::") for line in "".join(write_report(made)).split("\n")[:-1])
    page = summary(made, room)
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
