"""``tickets set``: new values for rows of a document's metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from finding_tickets.cli.editing import DryRun, Id, make, today
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.vocabulary import squeeze
from finding_tickets.register.edits import edit_of, setting
from finding_tickets.register.listing import list_rows
from finding_tickets.register.lookup import find_row


def set_values(
    ticket: Id,
    changes: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="Such as severity=P3; nothing after = clears.")
    ],
    root: Root = HERE,
    dry_run: DryRun = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Set metadata: severity=P3 assignee=me."""
    listing = list_rows(root)
    row = find_row(listing.rows, ticket)
    steps = [setting(key, values) for key, values in _given(changes)]
    edit = edit_of(row, listing.config.vocabulary, today(), *steps)
    what = f"{row.id}: {', '.join(changes)}"
    return make(listing, [edit], what, dry_run=dry_run, output_format=output_format)


def _given(changes: list[str]) -> Iterable[tuple[str, list[str]]]:
    """Each key with the values that it is given, however it is spelt."""
    given: dict[str, tuple[str, list[str]]] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not squeeze(key):
            raise UsageError(f"{change!r} sets nothing", hint="write key=value, such as severity=P3")
        given.setdefault(squeeze(key), (key.strip().lower(), []))[1].append(value)
    return given.values()
