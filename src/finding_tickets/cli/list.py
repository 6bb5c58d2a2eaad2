"""``tickets list``, ``board`` and ``graph``: the documents of a register, or those that a query means."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    OutputFormat,
    Query,
    Root,
    completes,
    flag,
    format_option,
    option,
    say_problem_count,
)
from finding_tickets.cli.output import (
    Format,
    say,
    style,
    table_lines,
    terminal_size,
    write,
    write_json,
    write_table,
)
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.vocabulary import UNSETTLED, Relationship
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, disposed
from finding_tickets.register.index import Row, list_rows
from finding_tickets.register.query import Facts, select
from finding_tickets.register.query.keys import close_words
from finding_tickets.report.rows import DEFAULT_COLUMNS, LIST_COLUMNS, csv_lines, list_cells
from finding_tickets.report.text import INDENT, counted, fields_of, single_line

MISSING = "-"
BOARD_COLUMNS = ("id", "severity", "verdict", "title")
MOST_SHOWN = 8
"""Tickets of one disposition that a board shows on a terminal."""
ListFormat = StrEnum("ListFormat", ["TABLE", "JSON", "CSV", "IDS"])
GraphFormat = StrEnum("GraphFormat", ["TEXT", "DOT", "MERMAID", "JSON"])
SHOWN = ",".join(DEFAULT_COLUMNS)
complete_columns = completes(lambda _: LIST_COLUMNS)


def list_tickets(
    query: Query = None,
    root: Root = HERE,
    columns: Annotated[
        str | None, option("NAMES", f"By default {SHOWN}.", autocompletion=complete_columns)
    ] = None,
    output_format: Annotated[ListFormat, format_option(help="How the list is printed.")] = ListFormat.TABLE,
    no_index: Annotated[bool, flag("--no-index", "Read every file instead of the index.")] = False,
    ready: Annotated[bool, flag("--ready", "Only open tickets that no open ticket blocks.")] = False,
) -> ExitCode:
    """List documents with severity, status and verdict."""
    # JSON and IDs have no columns to choose; an ignored option would look like a bug.
    if columns is not None and output_format not in (ListFormat.TABLE, ListFormat.CSV):
        raise UsageError(f"--format {output_format} has no --columns", hint="table and csv have")
    names = DEFAULT_COLUMNS if columns is None else [name.strip().lower() for name in columns.split(",")]
    for name in names:
        if name not in LIST_COLUMNS:
            hint = close_words(name, LIST_COLUMNS)
            raise UsageError(f"--columns: no such column as {name!r}", hint=hint)
    listing = list_rows(root, indexed=not no_index, measured=output_format is not ListFormat.IDS)
    facts = Facts.of_listing(listing)
    rows = select(" ".join(query or ()), facts)
    if ready:
        rows = [row for row in rows if is_ready(row, facts)]
    if output_format is ListFormat.JSON:
        # A document in JSON is the whole record, which a table does without.
        from finding_tickets.report.formats.json import ticket_item
        from finding_tickets.report.text import measured_documents

        write_json("ticket-list", map(ticket_item, measured_documents(facts, rows)))
    elif output_format is ListFormat.IDS:
        if rows:
            write("\n".join(single_line(row.id) for row in rows))
    elif output_format is ListFormat.CSV:
        write("".join(csv_lines([names, *(list_cells(row, facts, names) for row in rows)])))
    else:
        shown = (
            [cell or MISSING for cell in list_cells(row, facts, names, is_for_people=True)] for row in rows
        )
        write_table([name.upper() for name in names], shown)
    say(f"{len(rows)} of {counted(len(facts.rows), 'document')}")
    return say_problem_count(listing, root, (entry.problem for entry in facts.looked_up))


def board(query: Query = None, root: Root = HERE, output_format: OutputFormat = Format.TABLE) -> ExitCode:
    """Show tickets by what people decided about them."""
    listing = list_rows(root, measured=True)
    facts = Facts.of_listing(listing)
    findings = [row for row in select(" ".join(query or ()), facts) if row.kind == "finding"]
    by_disposition: dict[str, list[Row]] = {name: [] for name in (*DISPOSITIONS, UNDECIDED)}
    for row in findings:
        by_disposition[disposed(row.status, row.outcome)].append(row)
    columns = {name: rows for name, rows in by_disposition.items() if rows}
    if output_format is Format.JSON:
        names = ("id", "title", "path", "severity", "assignee")
        data = []
        for name, rows in columns.items():
            cards = [fields_of(row, *names) | {"verdict": facts.measured(row).verdict} for row in rows]
            data.append({"disposition": name, "tickets": cards})
        write_json("ticket-board", data)
    elif columns:
        width = terminal_size(sys.stdout).columns
        blocks = []
        for name, rows in columns.items():
            # The worst first; a pipe gets every ticket.
            worst = sorted(rows, key=lambda row: row.severity or UNDECIDED)
            shown = worst[:MOST_SHOWN] if width else worst
            cells = [[cell or MISSING for cell in list_cells(row, facts, BOARD_COLUMNS)] for row in shown]
            lines = table_lines(cells, max(width - len(INDENT), 0))
            lines += [f"and {len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
            head = style(f"{name} ({len(rows)})", "bold")
            blocks.append("\n".join([head, *(INDENT + line for line in lines)]))
        write("\n\n".join(blocks))
    say(f"{len(findings)} of {counted(len(facts.rows), 'document')}")
    return say_problem_count(listing, root, (entry.problem for entry in facts.looked_up))


def graph(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[GraphFormat, format_option(help="How the graph is printed.")] = GraphFormat.TEXT,
) -> ExitCode:
    """Show how documents relate to one another."""
    from finding_tickets.register.relations import graph as around
    from finding_tickets.report.graph import dot, graph_item, graph_text, mermaid

    listing = list_rows(root)
    facts = Facts.of_listing(listing)
    found = around(facts.relations, select(" ".join(query or ()), facts))
    if output_format is GraphFormat.JSON:
        write_json("ticket-graph", [graph_item(found)])
    # A drawing without relations still has its frame; a text without them has nothing.
    elif found.edges or output_format is not GraphFormat.TEXT:
        writers = {GraphFormat.TEXT: graph_text, GraphFormat.DOT: dot, GraphFormat.MERMAID: mermaid}
        write(writers[output_format](found))
    # Named here as well: a drawing with many nodes hides those of which there is no document.
    missing = sum(node.row is None for node in found.nodes)
    cycles = counted(len(found.cycles), "cycle")
    say(f"{counted(len(found.edges), 'relation')}, {missing} to what is missing, {cycles} of blocks")
    return say_problem_count(listing, root)


def is_ready(row: Row, facts: Facts) -> bool:
    """Whether a ticket is open and no open ticket blocks it; one that does not say how it stands is open."""

    def is_open(row: Row | None) -> bool:
        if row is None or row.kind != "finding":
            return False
        return row.status in UNSETTLED or not (row.status or row.outcome)

    others = facts.relations.by_id.get(row.id.casefold(), ())
    blockers = (facts.relations.rows.get(name) for name, how in others if how is Relationship.BLOCKED_BY)
    return is_open(row) and not any(map(is_open, blockers))
