"""``tickets tick``: items of a verification checklist that are done."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.editing import DryRun, Id, make, today
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format
from finding_tickets.errors import ExitCode
from finding_tickets.register.edits import edit_of, ticking
from finding_tickets.register.listing import list_rows
from finding_tickets.register.lookup import find_row


def tick(
    ticket: Id,
    items: Annotated[
        list[int], typer.Argument(metavar="N...", min=1, help="Items of the verification checklist, from 1.")
    ],
    root: Root = HERE,
    undo: Annotated[bool, typer.Option("--undo", help="Clear the boxes instead.")] = False,
    dry_run: DryRun = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Tick items of a checklist."""
    listing = list_rows(root)
    row = find_row(listing.rows, ticket)
    edit = edit_of(row, listing.config.vocabulary, today(), ticking(items, not undo))
    what = f"{row.id}: {'cleared' if undo else 'ticked'} {', '.join(map(str, items))}"
    return make(listing, [edit], what, dry_run=dry_run, output_format=output_format)
