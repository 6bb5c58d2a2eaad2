"""``tickets reopen``: a closed ticket is open again, and says why."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.editing import DryRun, Id, make, today
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.closing import reopening
from finding_tickets.register.edits import edit_of
from finding_tickets.register.keys import one_line
from finding_tickets.register.listing import list_rows
from finding_tickets.register.lookup import find_row


def reopen(
    ticket: Id,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")],
    root: Root = HERE,
    dry_run: DryRun = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Open a closed ticket again."""
    why = one_line("--reason", reason)
    if not why:
        raise UsageError("--reason must say why")
    listing = list_rows(root)
    row = find_row(listing.rows, ticket)
    edit = edit_of(row, listing.config.vocabulary, today(), reopening(why, today()))
    what = f"{row.id}: open again"
    return make(listing, [edit], what, dry_run=dry_run, output_format=output_format)
