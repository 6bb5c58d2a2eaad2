"""Relations between documents, as text, for Graphviz, for Mermaid and as plain values for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.relations import Edge, Graph, Node
from finding_tickets.report.verification import aligned

MISSING = "missing from the register"
INDENT = "  "
_UNSAFE_IN_MERMAID = re.compile(r"[^\w .,/()+=*-]")


def text(graph: Graph) -> str:
    """Each document asked for with what it is to others, missing ones too, and cycles of blocks."""
    nodes = {node.id: node for node in graph.nodes}
    edges: dict[str, list[Edge]] = {name: [] for name in nodes}
    for edge in graph.edges:
        for name in {edge.source, edge.target}:
            edges[name].append(edge)
    blocks = [
        "\n".join(
            [
                f"{node.id}  {_title(node)}",
                *(INDENT + line for line in aligned(_relations(node, edges[node.id], nodes))),
            ]
        )
        for node in graph.nodes
        if node.chosen
    ]
    return "\n\n".join([*blocks, *([_cycles(graph)] if graph.cycles else [])])


def dot(graph: Graph) -> str:
    """The graph in Graphviz's language."""
    return "\n".join(["digraph tickets {", *(INDENT + line for line in _dot(graph)), "}"])


def mermaid(graph: Graph) -> str:
    """The graph as a flowchart of Mermaid."""
    return "\n".join(["flowchart LR", *(INDENT + line for line in _mermaid(graph))])


def graph_item(graph: Graph) -> dict[str, object]:
    """The graph as plain values."""
    return {
        "nodes": [_node_item(node) for node in graph.nodes],
        "edges": [
            {
                "source": edge.source,
                "relationship": edge.relationship,
                "target": edge.target,
                "stated_by": list(edge.stated_by),
            }
            for edge in graph.edges
        ],
        "cycles": [list(cycle) for cycle in graph.cycles],
    }


def _node_item(node: Node) -> dict[str, object]:
    row = node.row
    return {
        "id": node.id,
        "title": row.title if row else None,
        "severity": row.severity if row else None,
        "status": row.status if row else None,
        "path": row.path if row else None,
        "missing": row is None,
    }


def _title(node: Node) -> str:
    return _line(node.row.title) if node.row else MISSING


def _relations(node: Node, edges: Sequence[Edge], nodes: dict[str, Node]) -> Iterator[tuple[str, ...]]:
    """What one document is to others by its ``edges``, and where only one of the two says so."""
    for edge in edges:
        forwards = node.id == edge.source
        how = edge.relationship if forwards else CONVERSE[edge.relationship]
        other = nodes[edge.target if forwards else edge.source]
        yield str(how), other.id, _remark(edge, other)


def _remark(edge: Edge, other: Node) -> str:
    if other.row is None:
        return f"({MISSING})"
    if edge.source == edge.target:
        return "(itself)"
    return "" if len(edge.stated_by) > 1 else f"(only {edge.stated_by[0]} says so)"


def _cycles(graph: Graph) -> str:
    return "\n".join(f"cycle of blocks: {_cycle(cycle)}" for cycle in graph.cycles)


def _cycle(cycle: tuple[str, ...]) -> str:
    return " -> ".join([*cycle, cycle[0]])


def _dot(graph: Graph) -> Iterator[str]:
    yield "rankdir=LR;"
    yield "node [shape=box];"
    for cycle in graph.cycles:
        yield f"// cycle of blocks: {_line(_cycle(cycle))}"
    for node in graph.nodes:
        style = "" if node.row else ", style=dashed"
        yield f"{_dot_text(node.id)} [label={_dot_text(node.id, _title(node))}{style}];"
    circular = _circular(graph)
    for edge in graph.edges:
        how = f"label={_dot_text(edge.relationship)}{_DOT_ARROWS[edge.relationship]}"
        colour = ", color=red" if edge in circular else ""
        yield f"{_dot_text(edge.source)} -> {_dot_text(edge.target)} [{how}{colour}];"


_DOT_ARROWS = {
    Relationship.BLOCKS: "",
    Relationship.DUPLICATE: ", style=dashed",
    Relationship.RELATED: ", dir=none",
}
_MERMAID_ARROWS = {
    Relationship.BLOCKS: "-->",
    Relationship.DUPLICATE: "-.->",
    Relationship.RELATED: "---",
}


def _dot_text(*lines: str) -> str:
    """A quoted string of Graphviz, in which a backslash and a quotation mark have a meaning."""
    escaped = (_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _mermaid(graph: Graph) -> Iterator[str]:
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    for cycle in graph.cycles:
        yield f"%% cycle of blocks: {_mermaid_text(_cycle(cycle))}"
    for node in graph.nodes:
        label = f"{_mermaid_text(node.id)}<br>{_mermaid_text(_title(node))}"
        yield f'{names[node.id]}["{label}"]{"" if node.row else ":::missing"}'
    for edge in graph.edges:
        arrow = f"{_MERMAID_ARROWS[edge.relationship]}|{edge.relationship}|"
        yield f"{names[edge.source]} {arrow} {names[edge.target]}"
    circular = _circular(graph)
    red = [str(number) for number, edge in enumerate(graph.edges) if edge in circular]
    if red:
        yield f"linkStyle {','.join(red)} stroke:red"
    yield "classDef missing stroke-dasharray: 5 5"


def _mermaid_text(text: str) -> str:
    """Text between quotation marks of Mermaid, with what may have a meaning written as its number."""
    return _UNSAFE_IN_MERMAID.sub(lambda match: f"#{ord(match[0])};", _line(text))


def _circular(graph: Graph) -> frozenset[Edge]:
    """The edges that cycles consist of."""
    steps = {step for cycle in graph.cycles for step in _steps(cycle)}
    blocks = (edge for edge in graph.edges if edge.relationship is Relationship.BLOCKS)
    return frozenset(edge for edge in blocks if (edge.source, edge.target) in steps)


def _steps(cycle: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return zip(cycle, (*cycle[1:], cycle[0]), strict=True)


def _line(text: str) -> str:
    """One line without control characters."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
