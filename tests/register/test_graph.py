"""Relations from both of their ends, and cycles of blocks."""

from __future__ import annotations

import pytest

from finding_tickets.model.vocabulary import Relationship
from finding_tickets.register.entries import Entry
from finding_tickets.register.relations import Edge, circles, relations


def row(document_id: str, *related: tuple[str, str]) -> Entry:
    """A document with these relations."""
    return Entry("finding", f"{document_id}.md", document_id, "It waits", related=related)


def blocks(*pairs: str) -> list[Edge]:
    """``blocks("AB")``: A blocks B."""
    return [Edge(pair[0], Relationship.BLOCKS, pair[1], (pair[0],)) for pair in pairs]


def test_what_each_end_would_say() -> None:
    """A document that states nothing itself is related as others say; also one that is missing."""
    seen = relations([row("A", ("B", "blocks"), ("C", "duplicate")), row("B")]).by_id
    assert [("b", "blocks"), ("c", "duplicate")] == list(seen["a"])
    assert [("a", "blocked-by")] == list(seen["b"])
    assert [("a", "duplicate")] == list(seen["c"])


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (blocks(), []),
        (blocks("AB", "BC", "AC"), []),
        (blocks("AA"), [["A"]]),
        (blocks("AB", "BA"), [["A", "B"]]),
        (blocks("AB", "BA", "BC", "CD", "DC"), [["A", "B"], ["C", "D"]]),
        # Of two circles that share A, the first.
        (blocks("AB", "BA", "AC", "CA"), [["A", "B"]]),
        (blocks("XA", "AB", "BC", "CA"), [["A", "B", "C"]]),
        ([Edge("A", Relationship.RELATED, "B", ("A",)), Edge("B", Relationship.RELATED, "A", ("A",))], []),
    ],
)
def test_cycles(edges: list[Edge], expected: list[list[str]]) -> None:
    """One for each circle of documents that block one another."""
    assert expected == [sorted(circle) for circle in circles(edges)]


def test_a_long_cycle_is_no_deep_recursion() -> None:
    """Ten thousand documents, each of which blocks the next, the last one the first."""
    names = [f"A-{number}" for number in range(10_000)]
    ring = zip(names, [*names[1:], names[0]], strict=True)
    edges = [Edge(source, Relationship.BLOCKS, target, (source,)) for source, target in ring]
    assert [set(names)] == circles(edges)
