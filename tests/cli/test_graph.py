"""``tickets graph``: relations in four forms, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

Tickets = Callable[..., "Ran"]


def related(*lines: str) -> str:
    """A section of related findings."""
    return "## Related Findings\n\n" + "".join(f"- {line}\n" for line in lines)


@pytest.fixture
def circle(repository: Repository) -> None:
    """Two tickets that block each other, one of them related to one that is not there."""
    repository.ticket("A-1", more=related("A-2 (blocks): first", "A-9: gone"))
    repository.ticket("A-2", more=related("A-1 (blocks): first"))
    repository.ticket("A-3")


@pytest.mark.usefixtures("circle")
def test_text(tickets: Tickets) -> None:
    """Direction, kind, what is missing, who alone says so, and the cycle; A-3 has no relation to show."""
    ran = tickets("graph")
    assert [
        "A-1  It waits",
        "  blocks      A-2  (only A-1 says so)",
        "  related     A-9  (missing from the register)",
        "  blocked-by  A-2  (only A-2 says so)",
        "",
        "A-2  It waits",
        "  blocked-by  A-1  (only A-1 says so)",
        "  blocks      A-1  (only A-2 says so)",
        "",
        "cycle of blocks: A-1 -> A-2 -> A-1",
    ] == ran.out.splitlines()
    assert (0, "3 relations, 1 to what is missing, 1 cycle of blocks\n") == (ran.code, ran.err)


@pytest.mark.usefixtures("circle")
def test_json(tickets: Tickets) -> None:
    """The envelope has one graph, with the keys that the documentation names."""
    (graph,) = tickets("graph", "A-2", "--format", "json").data
    assert {"nodes", "edges", "cycles"} == set(graph)
    node = {
        "id": "A-1",
        "title": "It waits",
        "severity": "P2",
        "status": "wont-fix",
        "path": "tickets/A-1.md",
        "missing": False,
    }
    assert node == graph["nodes"][0]
    edge = {"source": "A-1", "relationship": "blocks", "target": "A-2", "stated_by": ["A-1"]}
    assert edge == graph["edges"][0]
    assert [["A-1", "A-2"]] == graph["cycles"]


@pytest.mark.usefixtures("circle")
@pytest.mark.parametrize(("output", "first"), [("dot", "digraph tickets {"), ("mermaid", "flowchart LR")])
def test_drawings(tickets: Tickets, output: str, first: str) -> None:
    """The text of a drawing is on stdout, the counts are on stderr."""
    ran = tickets("graph", "--format", output)
    assert first == ran.out.splitlines()[0]
    assert "cycle of blocks: A-1" in ran.out
    assert ran.err.startswith("3 relations")


@pytest.mark.usefixtures("circle")
def test_nothing_related(tickets: Tickets) -> None:
    """A ticket without relations prints nothing as text, and a drawing of nothing otherwise."""
    assert (0, "") == (tickets("graph", "A-3").code, tickets("graph", "A-3").out)
    assert [] == tickets("graph", "A-3", "--format", "json").data[0]["nodes"]
    assert "digraph tickets {" in tickets("graph", "A-3", "--format", "dot").out


def test_files_that_cannot_be_read_are_said(tickets: Tickets, repository: Repository) -> None:
    """They are bad data, and the rest is shown."""
    repository.ticket("A-1", more=related("A-9"))
    repository.write("tickets/A-2.md", b"")
    ran = tickets("graph")
    assert 4 == ran.code
    assert "A-9" in ran.out
    assert "1 problem (1 error); " in ran.err
