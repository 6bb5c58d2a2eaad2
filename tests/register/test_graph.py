"""Relations from both of their ends, and cycles of blocks."""

from __future__ import annotations

import itertools
import random

import pytest

from finding_tickets.model.vocabulary import Relationship
from finding_tickets.register.index import Row
from finding_tickets.register.relations import Edge, cycles, graph, relations


def row(document_id: str, *related: tuple[str, str]) -> Row:
    """A document with these relations."""
    return Row("finding", f"{document_id}.md", document_id, "It waits", related=related)


def blocks(*pairs: str) -> list[Edge]:
    """``blocks("AB")``: A blocks B."""
    return [Edge(pair[0], Relationship.BLOCKS, pair[1], (pair[0],)) for pair in pairs]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # The blocker is the source, whoever says so.
        ([row("A", ("B", "blocks"))], [("A", "blocks", "B", ("A",))]),
        ([row("A"), row("B", ("A", "blocked-by"))], [("A", "blocks", "B", ("B",))]),
        ([row("A", ("B", "blocks")), row("B", ("A", "blocked-by"))], [("A", "blocks", "B", ("A", "B"))]),
        # Two that each say that they block the other contradict one another.
        (
            [row("A", ("B", "blocks")), row("B", ("A", "blocks"))],
            [("A", "blocks", "B", ("A",)), ("B", "blocks", "A", ("B",))],
        ),
        # The others have no direction of their own.
        ([row("A", ("B", "related")), row("B", ("A", "related"))], [("A", "related", "B", ("A", "B"))]),
        ([row("A", ("B", "duplicate")), row("B", ("A", "duplicate"))], [("A", "duplicate", "B", ("A", "B"))]),
        (
            [row("A", ("B", "related")), row("B", ("A", "duplicate"))],
            [("A", "related", "B", ("A",)), ("B", "duplicate", "A", ("B",))],
        ),
        # Said twice is said once; a relation to itself has one end.
        ([row("A", ("B", "blocks"), ("b", "blocks"))], [("A", "blocks", "B", ("A",))]),
        ([row("A", ("A", "blocks"))], [("A", "blocks", "A", ("A",))]),
        # IDs are spelt as their documents spell them.
        (
            [row("Task-1", ("A", "related")), row("A", ("TASK-1", "related"))],
            [("Task-1", "related", "A", ("Task-1", "A"))],
        ),
    ],
)
def test_edges(rows: list[Row], expected: list[tuple[str, str, str, tuple[str, ...]]]) -> None:
    """Each relation once, with those who state it."""
    edges = relations(rows).edges
    assert expected == [(edge.source, edge.relationship, edge.target, edge.stated_by) for edge in edges]


def test_what_each_end_would_say() -> None:
    """A document that states nothing itself is related as others say; also one that is missing."""
    seen = relations([row("A", ("B", "blocks"), ("C", "duplicate")), row("B")]).by_id
    assert [("b", "blocks"), ("c", "duplicate")] == list(seen["a"])
    assert [("a", "blocked-by")] == list(seen["b"])
    assert [("a", "duplicate")] == list(seen["c"])


def test_the_graph_around_documents() -> None:
    """Every relation of those chosen with both of its ends, missing ones marked; no other relation."""
    rows = [row("A", ("B", "blocks")), row("B", ("C", "related")), row("C", ("X", "related"))]
    found = graph(relations(rows), rows[:1])
    assert [("A", True, True), ("B", True, False)] == [
        (node.id, node.row is not None, node.chosen) for node in found.nodes
    ]
    assert [("A", "B")] == [(edge.source, edge.target) for edge in found.edges]
    missing = graph(relations(rows), rows[2:]).nodes
    assert [("B", False), ("C", False), ("X", True)] == [(node.id, node.row is None) for node in missing]


def test_a_cycle_is_said_of_each_document_in_it() -> None:
    """Also where the rest of the cycle is not asked for."""
    rows = [
        row("A", ("B", "blocks")),
        row("B", ("C", "blocks")),
        row("C", ("A", "blocks")),
        row("D", ("A", "blocks")),
    ]
    assert (("A", "B", "C"),) == graph(relations(rows), rows[1:2]).cycles
    assert () == graph(relations(rows), rows[3:]).cycles


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (blocks(), ()),
        (blocks("AB", "BC", "AC"), ()),
        (blocks("AA"), (("A",),)),
        (blocks("AB", "BA"), (("A", "B"),)),
        # The shortest way back to the first, not the longest.
        (blocks("AB", "BC", "CD", "DA", "BA"), (("A", "B"),)),
        # Two sets that do not reach one another both ways, in the order in which they are named.
        (blocks("AB", "BA", "BC", "CD", "DC"), (("A", "B"), ("C", "D"))),
        (blocks("XA", "AB", "BC", "CA"), (("A", "B", "C"),)),
        ([Edge("A", Relationship.RELATED, "B", ("A",)), Edge("B", Relationship.RELATED, "A", ("A",))], ()),
    ],
)
def test_cycles(edges: list[Edge], expected: tuple[tuple[str, ...], ...]) -> None:
    """One for each set of documents that block one another in the end."""
    assert expected == cycles(edges)


def test_cycles_of_random_graphs() -> None:
    """There is a cycle exactly where some document reaches itself, and each step of it is an edge."""
    generator = random.Random(4)  # noqa: S311 - the same graphs each time
    for _ in range(300):
        names = "ABCDEFG"[: generator.randint(1, 7)]
        pairs = [a + b for a, b in itertools.product(names, repeat=2) if generator.random() < 0.2]
        reached = {name: {pair[1] for pair in pairs if pair[0] == name} for name in names}
        for middle, start in itertools.product(names, repeat=2):
            if middle in reached[start]:
                reached[start] |= reached[middle]
        components = {
            frozenset(b for b in names if b in reached[a] and a in reached[b])
            for a in names
            if a in reached[a]
        }
        found = cycles(blocks(*pairs))
        assert len(components) == len(found)
        for cycle in found:
            assert len(set(cycle)) == len(cycle)
            assert all(a + b in pairs for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))
            assert any(set(cycle) <= component for component in components)


def test_a_long_chain_is_no_deep_recursion() -> None:
    """Ten thousand documents, each of which blocks the next, the last one the first."""
    names = [f"A-{number}" for number in range(10_000)]
    ring = zip(names, [*names[1:], names[0]], strict=True)
    edges = [Edge(source, Relationship.BLOCKS, target, (source,)) for source, target in ring]
    assert (tuple(names),) == cycles(edges)
