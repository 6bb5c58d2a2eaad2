"""The same words choose documents in every command that is about several."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

GONE = "## Related Findings\n\n- B9-PT-09: the same\n"


@pytest.fixture
def two(repository: Repository) -> None:
    """An open ticket and one that is not, each related to a third that is not there."""
    repository.ticket("B1-PT-01", status="open", more=GONE)
    repository.ticket("B1-PT-02", more=GONE)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    "words",
    [
        ["status:open"],
        ["B1-PT-01"],
        ["./tickets/B1-PT-01.md"],
        ["-status:wont-fix"],
        ["id:*-01 severity:P2"],
    ],
)
def test_one_query_everywhere(tickets: Tickets, words: list[str]) -> None:
    """List, lint, report and graph are about the same document."""
    assert ["B1-PT-01"] == [item["id"] for item in tickets("list", *words, "--format", "json").data]
    linted = tickets("lint", *words, "--format", "json")
    assert {"tickets/B1-PT-01.md"} == {problem["file"] for problem in linted.data}
    assert linted.err.startswith("1 document: ")
    reported = tickets("report", *words).out
    assert (True, False) == ("B1-PT-01" in reported, "B1-PT-02" in reported)
    (graph,) = tickets("graph", *words, "--format", "json").data
    assert [("B1-PT-01", "B9-PT-09")] == [(edge["source"], edge["target"]) for edge in graph["edges"]]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("command", ["list", "lint", "report", "graph", "verify"])
def test_one_error_everywhere(tickets: Tickets, command: str) -> None:
    """A query that cannot be read, or an ID that nobody has, ends every command before it prints anything."""
    ran = tickets(command, "status:opened", "agent:drl")
    assert (2, "") == (ran.code, ran.out)
    assert "no such status as 'opened' at column 8" in ran.err
    ran = tickets(command, "B1-PT-03", "status:open")
    assert (2, "") == (ran.code, ran.out)
    assert "no document has the ID 'B1-PT-03'" in ran.err
