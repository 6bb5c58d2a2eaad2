"""``tickets list`` and ``graph``: the documents of a register, or those that a query means."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    Query,
    Root,
    flag,
    format_option,
    option,
    say_problem_count,
)
from finding_tickets.cli.output import (
    say,
    style,
    terminal_size,
    write,
    write_json,
    write_table,
)
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.vocabulary import UNSETTLED, Relationship
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, disposed
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register, load
from finding_tickets.register.query import close_words, select
from finding_tickets.report.rows import (
    DEFAULT_COLUMNS,
    LIST_COLUMNS,
    REVIEW,
    csv_lines,
    list_cells,
)
from finding_tickets.report.text import INDENT, aligned, counted, single_line

MISSING = "-"
ListFormat = StrEnum("ListFormat", ["TABLE", "JSON", "CSV", "IDS"])
GraphFormat = StrEnum("GraphFormat", ["TEXT", "MERMAID", "JSON"])
Grouping = StrEnum("Grouping", ["DISPOSITION"])
SHOWN = ",".join(DEFAULT_COLUMNS)


def list_tickets(
    query: Query = None,
    root: Root = HERE,
    columns: Annotated[str | None, option("NAMES", f"By default {SHOWN}.")] = None,
    output_format: Annotated[
        ListFormat, format_option(help="How the list is printed.")
    ] = ListFormat.TABLE,
    ready: Annotated[
        bool, flag("--ready", "Only open tickets that no open ticket blocks.")
    ] = False,
    by: Annotated[
        Grouping | None, typer.Option(help="Put what people decided alike together.")
    ] = None,
) -> ExitCode:
    """List documents with severity, status and verdict."""
    # JSON and IDs have no columns to choose; an ignored option would look like a bug.
    if columns is not None and output_format not in (ListFormat.TABLE, ListFormat.CSV):
        raise UsageError(
            f"--format {output_format} has no --columns", hint="table and csv have"
        )
    if by and output_format is not ListFormat.TABLE:
        raise UsageError(f"--format {output_format} has no --by", hint="a table has")
    names = (
        DEFAULT_COLUMNS
        if columns is None
        else [name.strip().lower() for name in columns.split(",")]
    )
    for name in names:
        if name not in LIST_COLUMNS:
            hint = close_words(name, LIST_COLUMNS)
            raise UsageError(f"--columns: no such column as {name!r}", hint=hint)
    register = load(root)
    rows = select(" ".join(query or ()), register)
    if ready:
        rows = [row for row in rows if is_ready(row, register)]
    if output_format is ListFormat.JSON:
        # A document in JSON is the whole record, which a table does without.
        from finding_tickets.report.document import measured_documents
        from finding_tickets.report.formats.json import ticket_item

        write_json("ticket-list", map(ticket_item, measured_documents(register, rows)))
    elif output_format is ListFormat.IDS:
        if rows:
            write("\n".join(single_line(row.id) for row in rows))
    elif output_format is ListFormat.CSV:
        write(
            "".join(
                csv_lines([names, *(list_cells(row, register, names) for row in rows)])
            )
        )
    elif by:
        write(_by_disposition(rows, register, names))
    else:
        write_table(
            [name.upper() for name in names],
            [_shown_cells(row, register, names) for row in rows],
        )
    say(f"{len(rows)} of {counted(len(register.entries), 'document')}")
    paths: dict[str, list[str]] = {}
    for row in rows:
        paths.setdefault(row.id.casefold(), []).append(row.path)
    for row_id, sharing in paths.items():
        if len(sharing) > 1:
            say(
                f"{row_id.upper()} is the ID of {' and '.join(map(single_line, sharing))}"
            )
    # Each is listed, whatever ID it shares.
    return say_problem_count(register, root, but=("duplicate-id",))


def _shown_cells(row: Entry, register: Register, names: Sequence[str]) -> list[str]:
    return [
        single_line(cell) or MISSING
        for cell in list_cells(row, register, names, is_for_people=True)
    ]


def _by_disposition(
    rows: Iterable[Entry], register: Register, names: Sequence[str]
) -> str:
    """Return a table for each disposition, in the order in which a ticket goes through them."""
    groups: dict[str, list[Entry]] = {
        name: [] for name in (*DISPOSITIONS, UNDECIDED, REVIEW)
    }
    for row in rows:
        groups[
            disposed(row.status, row.outcome) if row.kind == "finding" else REVIEW
        ].append(row)
    width = terminal_size(sys.stdout).columns
    blocks = []
    for name, members in groups.items():
        if members:
            table = [_shown_cells(row, register, names) for row in members]
            lines = aligned(table, style, max(width - len(INDENT), 0), evenly=True)
            head = style(f"{name} ({len(members)})", "bold")
            blocks.append("\n".join([head, *(INDENT + line for line in lines)]))
    return "\n\n".join(blocks)


def graph(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[
        GraphFormat, format_option(help="How the graph is printed.")
    ] = GraphFormat.TEXT,
) -> ExitCode:
    """Show how documents relate to one another."""
    from finding_tickets.report.graph import (
        graph_around,
        graph_item,
        graph_text,
        mermaid,
    )

    register = load(root)
    rows = select(" ".join(query or ()), register)
    found = graph_around(register.relations, rows)
    if output_format is GraphFormat.JSON:
        write_json("ticket-graph", [graph_item(found)])
    elif output_format is GraphFormat.MERMAID:
        write(mermaid(found))
    elif found.edges:
        write(graph_text(found, rows))
    # A drawing with many nodes hides those of which there is no document.
    missing = sum(row is None for row in found.nodes.values())
    say(f"{counted(len(found.edges), 'relation')}, {missing} to what is missing")
    return say_problem_count(register, root)


def is_ready(row: Entry, register: Register) -> bool:
    """Return True if a ticket is open and no open ticket blocks it. A ticket without a status is open."""

    def is_open(row: Entry | None) -> bool:
        if row is None or row.kind != "finding":
            return False
        return row.status in UNSETTLED or not (row.status or row.outcome)

    others = register.relations.by_id.get(row.id.casefold(), ())
    blockers = (
        register.relations.rows.get(name)
        for name, how in others
        if how is Relationship.BLOCKED_BY
    )
    return is_open(row) and not any(map(is_open, blockers))
