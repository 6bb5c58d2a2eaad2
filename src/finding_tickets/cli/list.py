"""``tickets list``: the documents of a register, or those that a query means, one a line."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    Query,
    Root,
    flag,
    format_option,
    option,
    say_problem_count,
)
from finding_tickets.cli.output import say, write, write_json, write_table
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.index import list_rows
from finding_tickets.register.query import Facts, select
from finding_tickets.register.query.conditions import close_words
from finding_tickets.report.rows import DEFAULT_COLUMNS, LIST_COLUMNS, csv_lines, list_cells
from finding_tickets.report.text import counted, single_line

MISSING = "-"
ListFormat = StrEnum("ListFormat", ["TABLE", "JSON", "CSV", "IDS"])


def list_tickets(
    query: Query = None,
    root: Root = HERE,
    columns: Annotated[
        str | None, option("NAMES", f"What to show, by default {','.join(DEFAULT_COLUMNS)}.")
    ] = None,
    output_format: Annotated[ListFormat, format_option("How the list is printed.")] = ListFormat.TABLE,
    no_index: Annotated[bool, flag("--no-index", "Read every file instead of the index.")] = False,
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
    if output_format is ListFormat.JSON:
        # A document in JSON is the whole record, which a table does without.
        from finding_tickets.report.json import ticket_item
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
