"""Drawings of relations: whatever names contain, it stays inside of its quotation marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from finding_tickets.register.index import Row
from finding_tickets.register.relations import Edge, Graph, graph, relations
from finding_tickets.report.graph import dot, graph_text, mermaid

HOSTILE = [
    'a "b" c',
    "back\\slash \\",
    '"]; end',
    "<b>x</b> & <script>",
    "#quot; #35;",
    "%%{init: {}}%%",
    "`code` {a} [b] |c|",
    "style:#a; classDef x:#b;",
    "two\nlines\r\n\x1b[31m",
    "\\N \\G",
    "ünï-çödé 漢",
]
DOT_LINE = re.compile(
    r'  (?:"(?:[^"\\]|\\.)*"(?: -> "(?:[^"\\]|\\.)*")? \[label="(?:[^"\\]|\\.)*"[a-z, =]*\];|[^"]*)'
)
MERMAID_LINE = re.compile(r'  (?:n\d+\["[^"`%{}<>]*<br>[^"`%{}<>]*"\](?::::missing)?|[^"]*)')


def row(document_id: str, title: str, *related: tuple[str, str]) -> Row:
    """A document with a title and relations."""
    return Row("finding", "a.md", document_id, title, related=related)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_quoted_for_graphviz(name: str) -> None:
    """Every line is an attribute or a statement of quoted strings; reading them gives the names back."""
    rows = [row("A-1", name, ("A-2", "blocks")), row(name, "x", ("A-1", "related"))]
    drawn = dot(graph(relations(rows), rows))
    lines = drawn.splitlines()
    assert ("digraph tickets {", "}") == (lines[0], lines[-1])
    assert [] == [line for line in lines[1:-1] if not DOT_LINE.fullmatch(line)]
    shown = "".join(char if char.isprintable() else "?" for char in " ".join(name.split()))
    strings = [re.sub(r"\\(.)", r"\1", string) for string in re.findall(r'"((?:[^"\\]|\\.)*)"', drawn)]
    assert f"A-1n{shown}" in strings
    assert shown in strings


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_quoted_for_mermaid(name: str) -> None:
    """No name has a character that means something in Mermaid; entities give the name back."""
    rows = [row("A-1", name, ("A-2", "blocks")), row(name, "x", ("A-1", "related"))]
    drawn = mermaid(graph(relations(rows), rows))
    lines = drawn.splitlines()
    assert "flowchart LR" == lines[0]
    assert [] == [line for line in lines[1:] if not MERMAID_LINE.fullmatch(line)]
    shown = "".join(char if char.isprintable() else "?" for char in " ".join(name.split()))
    # Mermaid cuts entities short in what looks like a style: `style`, a colon and a number sign.
    assert [] == [line for line in lines if re.search(r"(style|classDef).*:\S*#.*;", line)]
    read = [re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), line) for line in lines]
    assert f'  n0["A-1<br>{shown}"]' in read


@pytest.fixture
def rows() -> list[Row]:
    """Relations of every kind, one missing document and a cycle."""
    return [
        row("A", "First", ("B", "blocks"), ("C", "duplicate"), ("X", "related"), ("A", "related")),
        row("B", "Second", ("A", "blocks"), ("C", "blocked-by")),
        row("C", "Third", ("A", "duplicate"), ("B", "blocks")),
    ]


def test_graphviz(rows: list[Row]) -> None:
    """Arrows run from what blocks; related has none; what is missing is dashed and a cycle red."""
    assert [
        "digraph tickets {",
        "  rankdir=LR;",
        "  node [shape=box];",
        "  // cycle of blocks: A -> B -> A",
        '  "A" [label="A\\nFirst"];',
        '  "B" [label="B\\nSecond"];',
        '  "C" [label="C\\nThird"];',
        '  "X" [label="X\\nmissing from the register", style=dashed];',
        '  "A" -> "B" [label="blocks", color=red];',
        '  "A" -> "C" [label="duplicate", style=dashed];',
        '  "A" -> "X" [label="related", dir=none];',
        '  "A" -> "A" [label="related", dir=none];',
        '  "B" -> "A" [label="blocks", color=red];',
        '  "C" -> "B" [label="blocks"];',
        "}",
    ] == dot(graph(relations(rows), rows)).splitlines()


def test_mermaid(rows: list[Row]) -> None:
    """The same as a flowchart; edges are coloured by their number from 0."""
    assert [
        "flowchart LR",
        "  %% cycle of blocks: A -#62; B -#62; A",
        '  n0["A<br>First"]',
        '  n1["B<br>Second"]',
        '  n2["C<br>Third"]',
        '  n3["X<br>missing from the register"]:::missing',
        "  n0 -->|blocks| n1",
        "  n0 -.->|duplicate| n2",
        "  n0 ---|related| n3",
        "  n0 ---|related| n0",
        "  n1 -->|blocks| n0",
        "  n2 -->|blocks| n1",
        "  linkStyle 0,4 stroke:red",
        "  classDef missing stroke-dasharray: 5 5",
    ] == mermaid(graph(relations(rows), rows)).splitlines()


def test_text(rows: list[Row]) -> None:
    """What each document is to others, who alone says so, and a relation to itself once."""
    assert [
        "A  First",
        "  blocks      B  (only A says so)",
        "  duplicate   C",
        "  related     X  (missing from the register)",
        "  related     A  (itself)",
        "  blocked-by  B  (only B says so)",
        "",
        "cycle of blocks: A -> B -> A",
    ] == graph_text(graph(relations(rows), rows[:1])).splitlines()


class Walked(tuple[Edge, ...]):
    """Edges that count how often somebody goes through them."""

    times = 0

    def __iter__(self) -> Iterator[Edge]:
        self.times += 1
        return super().__iter__()


@pytest.mark.parametrize("draw", [graph_text, dot, mermaid])
def test_each_edge_is_looked_at_a_fixed_number_of_times(draw: Callable[[Graph], str]) -> None:
    """A drawing takes time by the number of relations, not by that times the number of documents."""
    walks = []
    for count in (4, 40):
        # Pairs that block one another, so that there are as many cycles as pairs.
        rows = [row(f"A-{n}", "x", (f"A-{n ^ 1}", "blocks")) for n in range(count)]
        found = graph(relations(rows), rows)
        assert count // 2 == len(found.cycles)
        edges = Walked(found.edges)
        draw(replace(found, edges=edges))
        walks.append(edges.times)
    assert walks[0] == walks[1] > 0
