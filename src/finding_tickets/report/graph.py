"""Relations between documents as text, as a flowchart of Mermaid, and as plain values for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.entries import Entry
from finding_tickets.register.relations import Edge, Relations
from finding_tickets.report.text import INDENT, aligned, fields_of, single_line

MISSING = "missing from the register"
_UNSAFE_IN_MERMAID = re.compile(r"[^\w .,/()+=*-]")
_ARROWS = {
    Relationship.BLOCKS: "-->",
    Relationship.DUPLICATE: "-.->",
    Relationship.RELATED: "---",
}


@dataclass(frozen=True)
class Graph:
    """Relations, and for each ID in them its document; None stands for a missing one."""

    edges: Sequence[Edge]
    nodes: Mapping[str, Entry | None]


def graph_around(relations: Relations, rows: Iterable[Entry]) -> Graph:
    """Return the relations of ``rows``, and the documents that they lead to."""
    chosen = {row.id.casefold() for row in rows}
    edges = []
    nodes = {}
    for edge in relations.edges:
        ends = (edge.source, edge.target)
        if chosen.isdisjoint(end.casefold() for end in ends):
            continue
        edges.append(edge)
        for end in ends:
            nodes[end] = relations.rows.get(end.casefold())
    return Graph(edges, nodes)


def graph_text(graph: Graph, rows: Iterable[Entry]) -> str:
    """Return each of ``rows`` that has relations, with what it is to others."""
    lines: dict[str, list[tuple[str, str, str]]] = {name: [] for name in graph.nodes}
    for edge in graph.edges:
        lines[edge.source].append(
            (edge.relationship, edge.target, _title(graph, edge.target))
        )
        if edge.source != edge.target:
            lines[edge.target].append(
                (CONVERSE[edge.relationship], edge.source, _title(graph, edge.source))
            )
    blocks = []
    for row in rows:
        if lines.get(row.id):
            head = f"{row.id}  {single_line(row.title)}"
            blocks.append(
                "\n".join([head, *(INDENT + line for line in aligned(lines[row.id]))])
            )
    return "\n\n".join(blocks)


def mermaid(graph: Graph) -> str:
    """Return a flowchart of Mermaid."""
    lines = ["flowchart LR"]
    names: dict[str, str] = {}
    for number, (name, row) in enumerate(graph.nodes.items()):
        names[name] = f"n{number}"
        label = f"{_escaped(name)}<br>{_escaped(_title(graph, name))}"
        lines.append(f'{INDENT}n{number}["{label}"]{"" if row else ":::missing"}')
    for edge in graph.edges:
        arrow = f"{_ARROWS[edge.relationship]}|{edge.relationship}|"
        lines.append(f"{INDENT}{names[edge.source]} {arrow} {names[edge.target]}")
    lines.append(f"{INDENT}classDef missing stroke-dasharray: 5 5")
    return "\n".join(lines)


def graph_item(graph: Graph) -> dict[str, object]:
    """Return the graph as plain values."""
    nodes = []
    for name, row in graph.nodes.items():
        stated = {
            field: getattr(row, field, None)
            for field in ("title", "severity", "status", "path")
        }
        nodes.append({"id": name, **stated, "missing": row is None})
    edges = [
        fields_of(edge, "source", "relationship", "target", "stated_by")
        for edge in graph.edges
    ]
    return {"nodes": nodes, "edges": edges}


def _title(graph: Graph, name: str) -> str:
    row = graph.nodes[name]
    return single_line(row.title) if row else MISSING


def _escaped(text: str) -> str:
    """Write text for between Mermaid's quotation marks: what may have a meaning becomes its number."""
    return _UNSAFE_IN_MERMAID.sub(lambda match: f"#{ord(match[0])};", single_line(text))
