"""``tickets graph``: how documents relate to one another, to read or to draw."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, Query, Root
from finding_tickets.cli.output import counted, say, write, write_json
from finding_tickets.cli.registers import open_listing, reading_code
from finding_tickets.errors import ExitCode
from finding_tickets.register.query import Facts, select
from finding_tickets.register.relations import graph as around
from finding_tickets.report.graph import dot, graph_item, graph_text, mermaid


class GraphFormat(StrEnum):
    """How a graph is printed."""

    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"
    JSON = "json"


WRITERS = {GraphFormat.TEXT: graph_text, GraphFormat.DOT: dot, GraphFormat.MERMAID: mermaid}


def graph(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[
        GraphFormat, typer.Option("--format", case_sensitive=False, help="How the graph is printed.")
    ] = GraphFormat.TEXT,
) -> ExitCode:
    """Show how documents relate to one another."""
    listing = open_listing(root)
    facts = Facts.of_listing(listing)
    found = around(facts.relations, select(" ".join(query or ()), facts))
    if output_format is GraphFormat.JSON:
        write_json("ticket-graph", [graph_item(found)])
    elif found.edges or output_format is not GraphFormat.TEXT:
        write(WRITERS[output_format](found))
    missing = sum(node.row is None for node in found.nodes)
    cycles = counted(len(found.cycles), "cycle")
    say(f"{counted(len(found.edges), 'relation')}, {missing} to what is missing, {cycles} of blocks")
    return reading_code(listing.problems)
