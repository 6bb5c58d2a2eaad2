"""What the commands that edit documents share: making the edits, and saying what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated

import typer

from finding_tickets.cli.options import complete_id
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import ExitCode
from finding_tickets.ground.diff import diff
from finding_tickets.ground.writing import Edit, rewrite_all
from finding_tickets.register.listing import Listing

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change as a diff; change nothing.")]
Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=complete_id, help="A ticket, in any case.")]


def today() -> date:
    """The day it is here."""
    return datetime.now().astimezone().date()


def make(
    listing: Listing, edits: Sequence[Edit], what: str, *, dry_run: bool, output_format: Format
) -> ExitCode:
    """Make the edits; print the files that changed, or for a dry run the diff."""
    changes = rewrite_all(listing.root, edits, dry_run=dry_run)
    changed = [change for change in changes if change.old != change.new]
    if output_format is Format.JSON:
        items = [{"path": change.path, "diff": diff(change), "written": not dry_run} for change in changed]
        write_json("edits", items)
    elif changed:
        write("".join(map(diff, changed)) if dry_run else "\n".join(change.path for change in changed))
    if not changed:
        say(f"nothing to change: {what}")
    elif not dry_run:
        say(what)
    return ExitCode.OK
