"""``tickets graph``: how documents relate to one another, to read or to draw."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from finding_tickets.cli.options import HERE, Query, Root, format_option, say_problem_count
from finding_tickets.cli.output import say, write, write_json
from finding_tickets.errors import ExitCode
from finding_tickets.register.index import list_rows
from finding_tickets.register.query import Facts, select
from finding_tickets.register.relations import graph as around
from finding_tickets.report.graph import dot, graph_item, graph_text, mermaid
from finding_tickets.report.text import counted

GraphFormat = StrEnum("GraphFormat", ["TEXT", "DOT", "MERMAID", "JSON"])
WRITERS = {GraphFormat.TEXT: graph_text, GraphFormat.DOT: dot, GraphFormat.MERMAID: mermaid}


def graph(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[GraphFormat, format_option(help="How the graph is printed.")] = GraphFormat.TEXT,
) -> ExitCode:
    """Show how documents relate to one another."""
    listing = list_rows(root)
    facts = Facts.of_listing(listing)
    found = around(facts.relations, select(" ".join(query or ()), facts))
    if output_format is GraphFormat.JSON:
        write_json("ticket-graph", [graph_item(found)])
    # A drawing without relations still has its frame; a text without them has nothing.
    elif found.edges or output_format is not GraphFormat.TEXT:
        write(WRITERS[output_format](found))
    # Named here as well: a drawing with many nodes hides those of which there is no document.
    missing = sum(node.row is None for node in found.nodes)
    cycles = counted(len(found.cycles), "cycle")
    say(f"{counted(len(found.edges), 'relation')}, {missing} to what is missing, {cycles} of blocks")
    return say_problem_count(listing, root)
