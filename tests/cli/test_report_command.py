"""``tickets report``: Markdown on stdout or in a file, from a template that may be the user's own."""

from __future__ import annotations

from tests.cli.conftest import Tickets
from tests.conftest import Repository


def test_a_report_on_stdout(tickets: Tickets, repository: Repository) -> None:
    """Both tables count every document once; what is open is listed as work."""
    repository.ticket("B1-PT-01", title="A | b")
    repository.ticket("B1-PT-02", severity="P0", status="open")
    ran = tickets("report")
    assert 0 == ran.code
    lines = ran.out.splitlines()
    # One P0 that is open and one P2 that will not be fixed; neither has been measured.
    assert [
        "| severity | open | wont-fix | sum |",
        "|---|---:|---:|---:|",
        "| P0 | 1 | 0 | 1 |",
        "| P2 | 0 | 1 | 1 |",
        "| sum | 1 | 1 | 2 |",
    ] == lines[lines.index("## Severity and disposition") + 4 :][:5]
    verdicts = lines[lines.index("## Severity and verdict") + 4 :][:3]
    assert ["| P0 | 1 | 1 |", "| P2 | 1 | 1 |", "| sum | 2 | 2 |"] == verdicts
    assert "| B1-PT-01 | P2 | wont-fix | unverified | not reviewed |  |  | A \\| b |" in lines
    assert [
        "Verdicts: 2 unverified.",
        "",
        "## What to do next",
        "",
        "- **1**: fix it, or decide to keep the code as it is",
        "  - B1-PT-02 (P0, open, unverified): It waits",
    ] == lines[4:10]


def test_a_report_says_what_it_is_about(tickets: Tickets, repository: Repository) -> None:
    """A report on some of the documents names the query that chose them, in quotes that it cannot leave."""
    repository.ticket("B1-PT-01", status="open")
    repository.ticket("B1-PT-02")
    assert "chosen by" not in tickets("report").out
    reported = tickets("report", "status:open", '-title:"a`b"').out
    assert '1 document, chosen by ``status:open -title:"a`b"``.' in reported


def test_a_report_in_a_file(tickets: Tickets, repository: Repository) -> None:
    """With --output, stdout stays empty and the file has the whole report."""
    file = repository.root / "status.md"
    ran = tickets("report", "--output", str(file))
    assert (0, "", f"wrote {file}\n") == (ran.code, ran.out, ran.err)
    assert file.read_text() == tickets("report").out


def test_a_template_that_is_not_there(tickets: Tickets) -> None:
    """The templates that there are are named."""
    ran = tickets("report", "--template", "long.j2")
    assert 2 == ran.code
    assert "there is no template long.j2" in ran.err
    assert "report.md.j2" in ran.err


def test_a_template_with_an_unknown_name(tickets: Tickets, repository: Repository) -> None:
    """A misspelt name is an error rather than an empty place in the report."""
    repository.write("templates/odd.j2", "{{ status.totl }}")
    ran = tickets("report", "--template", "odd.j2")
    assert (4, "") == (ran.code, ran.out)
    assert "totl" in ran.err


def test_unreadable_documents_are_said_and_the_rest_reported(
    tickets: Tickets, repository: Repository
) -> None:
    """The report is of what can be read; the exit code says that there is more."""
    repository.ticket()
    repository.write("tickets/B1-PT-02.md", b"")
    ran = tickets("report")
    assert 4 == ran.code
    assert "\n1 document.\n" in ran.out
    assert "1 problem (1 error); " in ran.err
