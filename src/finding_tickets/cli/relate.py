"""``tickets relate``: two tickets name each other."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.editing import DryRun, Id, make, today
from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.vocabulary import CONVERSE, Relationship, Words
from finding_tickets.register.edits import edit_of, relating
from finding_tickets.register.keys import one_line
from finding_tickets.register.listing import list_rows
from finding_tickets.register.lookup import find_row

KINDS: Words = {kind.value: () for kind in Relationship}


def relate(
    ticket: Id,
    other: Id,
    kind: Annotated[str, typer.Option("--as", metavar="WORD", help=f"One of {', '.join(KINDS)}.")],
    root: Root = HERE,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What they have in common.")] = "",
    dry_run: DryRun = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Relate two tickets, in both of them."""
    (word,) = known("as", [kind], KINDS, "relationship")
    relationship, remark = Relationship(word), one_line("--note", note)
    listing = list_rows(root)
    words, first, second = (
        listing.config.vocabulary,
        find_row(listing.rows, ticket),
        find_row(listing.rows, other),
    )
    if first is second:
        raise UsageError(f"{first.id} cannot relate to itself")
    edits = [
        edit_of(first, words, today(), relating(second.id, relationship, remark)),
        edit_of(second, words, today(), relating(first.id, CONVERSE[relationship], remark)),
    ]
    what = f"{first.id}: {relationship} {second.id}"
    return make(listing, edits, what, dry_run=dry_run, output_format=output_format)
