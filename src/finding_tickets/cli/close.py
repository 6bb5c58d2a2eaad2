"""``tickets close``: what came of a ticket, written into it."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.editing import DryRun, Id, make, today
from finding_tickets.cli.options import HERE, OutputFormat, Root, complete_id, known
from finding_tickets.cli.output import Format
from finding_tickets.documents.reading import Document
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Outcome, Relationship, Words
from finding_tickets.register.closing import Closing, closing, original_of
from finding_tickets.register.edits import edit_of, relating
from finding_tickets.register.keys import one_line
from finding_tickets.register.lifecycle import SETTLED_AS
from finding_tickets.register.listing import list_rows
from finding_tickets.register.lookup import find_row
from finding_tickets.register.query import Facts
from finding_tickets.register.row import row_of

OUTCOMES = ", ".join(SETTLED_AS)


def close(
    ticket: Id,
    outcome: Annotated[str, typer.Option("--as", metavar="WORD", help=f"One of {OUTCOMES}.")],
    root: Root = HERE,
    of: Annotated[
        str | None,
        typer.Option(metavar="ID", autocompletion=complete_id, help="The ticket that it is a duplicate of."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Close as fixed without a measurement; needs a reason.")
    ] = False,
    dry_run: DryRun = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Close a ticket; as fixed only if it is verified."""
    listing = list_rows(root)
    words = listing.config.vocabulary
    row = find_row(listing.rows, ticket)
    wanted, why = _outcome(outcome, words.outcomes), one_line("--reason", reason)
    _check(wanted, of, why, force)
    original = original_of(row, find_row(listing.rows, of)) if of else None

    def verdict_of(current: Document) -> Verdict:
        fresh = row_of(current)
        return Facts(listing.root, listing.config, (fresh,), {fresh.path: current}).verdict(fresh)

    end = Closing(wanted, today(), why, original.id if original else None, force)
    linked = [relating(original.id, Relationship.DUPLICATE)] if original else []
    edits = [edit_of(row, words, today(), *linked, closing(end, verdict_of))]
    if original:
        # Should a crash leave the second file old, the ticket is still open and can be closed once more.
        edits.insert(0, edit_of(original, words, today(), relating(row.id, Relationship.DUPLICATE)))
    what = f"{row.id}: closed as {wanted}{f' of {original.id}' if original else ''}"
    return make(listing, edits, what, dry_run=dry_run, output_format=output_format)


def _outcome(word: str, words: Words) -> Outcome:
    spellings = {outcome.value: words.get(outcome, ()) for outcome in SETTLED_AS}
    (known_word,) = known("as", [word], spellings, "outcome")
    return Outcome(known_word)


def _check(outcome: Outcome, of: str | None, reason: str, force: bool) -> None:
    """Refuse options that do not belong together."""
    if (outcome is Outcome.DUPLICATE) is not bool(of):
        raise UsageError("--of names the ticket that a duplicate repeats: --as duplicate --of ID")
    if force and outcome is not Outcome.FIXED:
        raise UsageError("--force is for --as fixed alone: nothing else needs a measurement")
    if force and not reason:
        raise UsageError("--force needs a --reason, which the ticket keeps")
