"""Relations between documents, as text, for Graphviz, for Mermaid and as plain values for JSON."""

from __future__ import annotations

import re

from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.relations import Edge, Graph, GraphNode
from finding_tickets.report.text import INDENT, aligned, fields_of, single_line

MISSING = "missing from the register"
_UNSAFE_IN_MERMAID = re.compile(r"[^\w .,/()+=*-]")
_DOT_ARROWS = {
    Relationship.BLOCKS: "",
    Relationship.DUPLICATE: ", style=dashed",
    Relationship.RELATED: ", dir=none",
}
_MERMAID_ARROWS = {Relationship.BLOCKS: "-->", Relationship.DUPLICATE: "-.->", Relationship.RELATED: "---"}


def graph_text(graph: Graph) -> str:
    """Each document asked for with what it is to others, missing ones too, and cycles of blocks."""
    nodes = {node.id: node for node in graph.nodes}
    rows: dict[str, list[tuple[str, str, str]]] = {name: [] for name in nodes}
    for edge in graph.edges:
        one_sided = f"(only {edge.stated_by[0]} says so)" if len(edge.stated_by) == 1 else ""
        # Seen from its other end, what blocks is blocked; what is related to itself is listed once.
        ends = {
            edge.target: (edge.source, CONVERSE[edge.relationship]),
            edge.source: (edge.target, edge.relationship),
        }
        for name, (other, how) in ends.items():
            remark = "(itself)" if name == other else one_sided
            rows[name].append((how, other, remark if nodes[other].row else f"({MISSING})"))
    blocks = [
        [f"{node.id}  {_title(node)}", *(INDENT + line for line in aligned(rows[node.id]))]
        for node in graph.nodes
        if node.chosen
    ]
    blocks += [[f"cycle of blocks: {_cycle(cycle)}" for cycle in graph.cycles]] if graph.cycles else []
    return "\n\n".join(map("\n".join, blocks))


def dot(graph: Graph) -> str:
    """The graph in Graphviz's language."""
    lines = ["rankdir=LR;", "node [shape=box];"]
    lines += [f"// cycle of blocks: {single_line(_cycle(cycle))}" for cycle in graph.cycles]
    for node in graph.nodes:
        style = "" if node.row else ", style=dashed"
        lines.append(f"{_dot_text(node.id)} [label={_dot_text(node.id, _title(node))}{style}];")
    circular = _circular(graph)
    for edge in graph.edges:
        how = f"label={_dot_text(edge.relationship)}{_DOT_ARROWS[edge.relationship]}"
        colour = ", color=red" if edge in circular else ""
        lines.append(f"{_dot_text(edge.source)} -> {_dot_text(edge.target)} [{how}{colour}];")
    return "\n".join(["digraph tickets {", *(INDENT + line for line in lines), "}"])


def mermaid(graph: Graph) -> str:
    """The graph as a flowchart of Mermaid."""
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = [f"%% cycle of blocks: {_mermaid_text(_cycle(cycle))}" for cycle in graph.cycles]
    for node in graph.nodes:
        label = f"{_mermaid_text(node.id)}<br>{_mermaid_text(_title(node))}"
        lines.append(f'{names[node.id]}["{label}"]{"" if node.row else ":::missing"}')
    circular, red = _circular(graph), []
    for number, edge in enumerate(graph.edges):
        arrow = f"{_MERMAID_ARROWS[edge.relationship]}|{edge.relationship}|"
        lines.append(f"{names[edge.source]} {arrow} {names[edge.target]}")
        red += [str(number)] if edge in circular else []
    lines += [f"linkStyle {','.join(red)} stroke:red"] if red else []
    lines.append("classDef missing stroke-dasharray: 5 5")
    return "\n".join(["flowchart LR", *(INDENT + line for line in lines)])


def graph_item(graph: Graph) -> dict[str, object]:
    """The graph as plain values."""
    nodes = [
        {
            "id": node.id,
            **{name: getattr(node.row, name, None) for name in ("title", "severity", "status", "path")},
            "missing": node.row is None,
        }
        for node in graph.nodes
    ]
    edges = [fields_of(edge, "source", "relationship", "target", "stated_by") for edge in graph.edges]
    return {"nodes": nodes, "edges": edges, "cycles": graph.cycles}


def _title(node: GraphNode) -> str:
    return single_line(node.row.title) if node.row else MISSING


def _cycle(cycle: tuple[str, ...]) -> str:
    return " -> ".join([*cycle, cycle[0]])


def _circular(graph: Graph) -> frozenset[Edge]:
    """The edges that cycles consist of."""
    steps = {step for cycle in graph.cycles for step in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
    blocks = (edge for edge in graph.edges if edge.relationship is Relationship.BLOCKS)
    # A cycle of blocks can never be worked off.
    return frozenset(edge for edge in blocks if (edge.source, edge.target) in steps)


def _dot_text(*lines: str) -> str:
    """A quoted string of Graphviz, in which a backslash and a quotation mark have a meaning."""
    escaped = (single_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _mermaid_text(text: str) -> str:
    """Text between quotation marks of Mermaid, with what may have a meaning written as its number."""
    return _UNSAFE_IN_MERMAID.sub(lambda match: f"#{ord(match[0])};", single_line(text))
