"""``tickets graph``: relations in three forms, and what is said of them."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository


def related(*lines: str) -> str:
    """A section of related findings."""
    return "## Related Findings\n\n" + "".join(f"- {line}\n" for line in lines)


@pytest.fixture
def four(repository: Repository) -> None:
    """Relations of each kind, also to what is not there and to the ticket itself; A-4 has none."""
    repository.ticket("A-1", title="One", more=related("A-2 (blocks): first", "A-9: gone", "A-1: itself"))
    repository.ticket("A-2", title="Two", more=related("A-1 (blocked-by): first", "A-3 (duplicate)"))
    repository.ticket("A-3", title="Three")
    repository.ticket("A-4", title="Four")


@pytest.mark.usefixtures("four")
def test_text(tickets: Tickets) -> None:
    """Each ticket with what it is to others, whichever of the two says so."""
    ran = tickets("graph")
    assert [
        "A-1  One",
        "  blocks   A-2  Two",
        "  related  A-9  missing from the register",
        "  related  A-1  One",
        "",
        "A-2  Two",
        "  blocked-by  A-1  One",
        "  duplicate   A-3  Three",
        "",
        "A-3  Three",
        "  duplicate  A-2  Two",
    ] == ran.out.splitlines()
    # Two documents state that A-1 blocks A-2, which is one relation.
    assert (0, "4 relations, 1 to what is missing\n") == (ran.code, ran.err)


@pytest.mark.usefixtures("four")
def test_a_query_chooses_whose_relations(tickets: Tickets) -> None:
    """Those of the chosen documents with both of their ends, and no others."""
    assert ["A-3  Three", "  duplicate  A-2  Two"] == tickets("graph", "A-3").out.splitlines()
    (graph,) = tickets("graph", "A-3", "--format", "json").data
    assert {"nodes", "edges"} == set(graph)
    node = {
        "id": "A-2",
        "title": "Two",
        "severity": "P2",
        "status": "wont-fix",
        "path": "tickets/A-2.md",
        "missing": False,
    }
    assert node == graph["nodes"][0]
    edge = {"source": "A-2", "relationship": "duplicate", "target": "A-3", "stated_by": ["A-2"]}
    assert [edge] == graph["edges"]
