"""``tickets list``: what it lists, in which form, and what it says of files that it cannot read."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.register import staleness


@pytest.fixture
def three(repository: Repository) -> None:
    """Three tickets that differ in severity, status, domain and agent."""
    domain = "| **Domain** | `{0}` |\n| **Agent** | `{1}` |\n"
    repository.ticket("B1-PT-10", severity="P1", rows=domain.format("train/loop", "pytorch"))
    repository.ticket("B1-PT-09", severity="P3", rows=domain.format("train", "drl"))
    file = repository.ticket("B1-PT-02", status="open", rows=domain.format("trainer", "codereview"))
    file.write_text(file.read_text().replace("[ ] Numerical", "[x] Numerical"))


@pytest.mark.usefixtures("three")
def test_documents_are_listed_as_people_count(tickets: Tickets) -> None:
    """Ticket 9 comes before ticket 10, each with severity, status, verdict and title."""
    ran = tickets("list")
    assert [
        "ID        SEVERITY  STATUS    VERDICT     TITLE",
        "B1-PT-02  P2        open      unverified  It waits",
        "B1-PT-09  P3        wont-fix  unverified  It waits",
        "B1-PT-10  P1        wont-fix  unverified  It waits",
    ] == ran.out.splitlines()
    assert (0, "3 of 3 documents\n") == (ran.code, ran.err)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("severity:p1,P3", ["B1-PT-09", "B1-PT-10"]),
        # A domain holds what lies below it, but not what merely begins alike.
        ("domain:Train", ["B1-PT-09", "B1-PT-10"]),
        ("domain:train -agent:drl", ["B1-PT-10"]),
        ("b1-pt-10 B1-PT-02", ["B1-PT-10", "B1-PT-02"]),
        ("verdict:verified", []),
        ("sort:severity", ["B1-PT-10", "B1-PT-02", "B1-PT-09"]),
    ],
)
def test_words_are_a_query(tickets: Tickets, words: str, expected: list[str]) -> None:
    """As one argument or as several."""
    assert expected == tickets("list", "--format", "ids", words).out.split()
    assert expected == tickets("list", "--format", "ids", *words.split()).out.split()


@pytest.mark.usefixtures("three")
def test_a_query_that_means_nothing_is_wrong_usage(tickets: Tickets) -> None:
    """A misspelt word does not silently list nothing: its place and close words are named."""
    ran = tickets("list", "agent:drl", "status:opne")
    assert (2, "") == (ran.code, ran.out)
    # After `agent:drl ` and `status:` comes column 18.
    expected = "error: no such status as 'opne' at column 18 of 'agent:drl status:opne' (did you mean open?)"
    assert [expected] == ran.err.splitlines()


@pytest.mark.usefixtures("three")
def test_columns(tickets: Tickets) -> None:
    """They are chosen by name; what a document does not state is a dash in a table."""
    ran = tickets("list", "--columns", "id,DOMAIN, assignee", "severity:P1")
    assert ["ID        DOMAIN      ASSIGNEE", "B1-PT-10  train/loop  -"] == ran.out.splitlines()
    assert "1 of 3 documents\n" == ran.err


@pytest.mark.usefixtures("three")
def test_csv(tickets: Tickets, repository: Repository) -> None:
    """A header and a line for each document, quoted where needed; what is not stated is empty."""
    repository.ticket("B1-PT-11", title='A "slow", long wait')
    ran = tickets("list", "--format", "csv", "--columns", "id,agent,title", "B1-PT-09", "B1-PT-11")
    assert ["id,agent,title", "B1-PT-09,drl,It waits", 'B1-PT-11,,"A ""slow"", long wait"'] == (
        ran.out.splitlines()
    )


def test_evidence_is_read_where_a_verdict_is_shown_or_asked_for(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of IDs does not look at evidence."""
    repository.ticket()
    file = repository.write("evidence/B1-PT-01/simulated.json", "{")
    read = []
    monkeypatch.setattr(staleness, "read_facts", lambda _: read.append(file))
    for words in (("--format", "ids"), ("--columns", "id,title")):
        assert 0 == tickets("list", *words).code
    assert [] == read
    tickets("list")
    assert [file] == read


def test_evidence_that_cannot_be_read_is_stale(tickets: Tickets, repository: Repository) -> None:
    """A damaged file of evidence hides no other ticket, and measuring again replaces it."""
    repository.ticket()
    repository.write("evidence/B1-PT-01/simulated.json", "{")
    ran = tickets("list")
    assert (0, True) == (ran.code, "stale" in ran.out)
    page = tickets("show", "B1-PT-01").out
    assert "stale (changed since it was measured: its evidence was merged or edited)" in page


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("severity>=P1", "severity:>=P1"),
        ("status=open", "status:open"),
        ("Status!=open", "-status:open"),
        ("priority:high", "severity:high"),
        ("-state=open", "status:open"),
        ("labels:gpu", "domain:gpu"),
        ("owner=", "assignee:VALUE"),
        ("severity >= P1", "a condition without spaces, such as severity:>=P1"),
        ("status: open", "status:VALUE without a space"),
        ("stauts:open", "status"),
        ("colour:red", "one of id, kind,"),
    ],
)
def test_near_misses_are_named_with_the_right_form(tickets: Tickets, typed: str, right: str) -> None:
    """What looks like a condition of another tool is wrong usage, and not searched for as text."""
    ran = tickets("list", typed)
    assert (2, "") == (ran.code, ran.out)
    assert right in ran.err.rpartition("(")[2]


def blocking(*names: str) -> str:
    """A section that says that a ticket blocks these."""
    rows = "".join(f"- {name} (blocks): first this\n" for name in names)
    return f"## Related Findings\n\n{rows}"


def test_ready_tickets(tickets: Tickets, repository: Repository) -> None:
    """Those that are open and that no open ticket blocks, whichever of the two says so."""
    repository.ticket("A-1", status="open", more=blocking("A-2", "A-3"))
    repository.ticket("A-2", status="open")
    repository.ticket("A-3", status="wont-fix")
    repository.ticket("A-4", status="wont-fix", more=blocking("A-5"))
    repository.ticket("A-5", status="open")
    # Nobody has settled the ticket that another register has, as far as this one knows; it is not here.
    repository.ticket("A-6", status="open", more="## Related Findings\n\n- X-1 (blocked-by): later\n")
    assert ["A-1", "A-5", "A-6"] == tickets("list", "--ready", "--format", "ids").out.split()
    assert ["A-5"] == tickets("list", "--ready", "A-5", "--format", "ids").out.split()


def test_by_disposition(tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is open comes first, what is closed by its outcome, and reviews, which nobody decides, last."""
    repository.ticket("A-1", status="open", severity="P2")
    repository.ticket("A-2", status="closed", more="## Resolution\n\n**Status:** Not a bug\n")
    repository.ticket("A-3", status="open", severity="P1")
    repository.write("tickets/task-1.md", "# Task 1 Implementation Review: Waits\n\n**Reviewer:** drl\n")
    arguments = ["list", "--by", "disposition", "--columns", "id,severity,title"]
    assert [
        "open (2)",
        "  A-1  P2  It waits",
        "  A-3  P1  It waits",
        "",
        "not-a-bug (1)",
        "  A-2  P2  It waits",
        "",
        "review (1)",
        "  TASK-1  -  Waits",
    ] == tickets(*arguments).out.splitlines()
    repository.ticket("A-1", status="open", title="It waits " * 20)
    monkeypatch.setenv("COLUMNS", "40")
    assert 40 == max(map(len, tickets(*arguments).out.splitlines()))
    refused = tickets(*arguments[:3], "--format", "json")
    assert (2, "error: --format json has no --by (a table has)\n") == (refused.code, refused.err)


def test_a_problem_is_in_the_way_of_no_search(tickets: Tickets, repository: Repository) -> None:
    """The number of problems is one line below the rows, without those that lint is told to ignore."""
    repository.ticket("A-1", severity="dire")
    repository.ticket("A-2", severity="mild", more="<!-- lint-ignore unknown-word: ours -->\n")
    repository.write("tickets/notes.md", "Buy milk.\n")
    ran = tickets("list", "WAITS")
    assert 0 == ran.code
    assert ["A-1", "A-2"] == [line.split()[0] for line in ran.out.splitlines()[1:]]
    # A-1's severity, and a file that is no document.
    last = f"2 problems; tickets lint --root {repository.root} prints them"
    assert ["2 of 2 documents", last] == ran.err.splitlines()
    said = tickets("lint").out
    assert ("tickets/A-1.md" in said, "notes.md" in said, "unknown-word" in said) == (True, True, True)
    repository.write("tickets.toml", "lint_ignore = ['unknown-word', 'not-a-document']\n")
    assert "2 of 2 documents\n" == tickets("list", "WAITS").err


def test_documents_that_share_an_id_are_listed(repository: Repository, tickets: Tickets) -> None:
    """Both are in the list, which ends with 0 and names their files; lint fails for it."""
    repository.ticket("A-1", path="tickets/one.md")
    repository.ticket("A-1", path="tickets/two.md")
    ran = tickets("list", "--columns", "path")
    assert (0, ["PATH", "tickets/one.md", "tickets/two.md"]) == (ran.code, ran.out.split())
    assert "A-1 is the ID of tickets/one.md and tickets/two.md\n" in ran.err
    assert 4 == tickets("lint").code
