"""The commands that edit documents: ``set``, ``tick`` and ``close``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    WRITING,
    Id,
    Measuring,
    Root,
    Timeout,
    Writing,
    complete_id,
    flag,
    option,
    today,
    words_of,
)
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.documents.reading import Document
from finding_tickets.errors import UsageError
from finding_tickets.ground.files import rewrite
from finding_tickets.model.vocabulary import UNSETTLED, Outcome, Verdict, squeeze
from finding_tickets.register.actions import (
    Step,
    add_duplicate,
    edit_of,
    one_line,
    set_key,
    tick_items,
)
from finding_tickets.register.closing import Closing, close_ticket, original_of
from finding_tickets.register.disposition import SETTLED_AS
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register, load

OUTCOMES = ", ".join(SETTLED_AS)
NOT_FRESH = frozenset({Verdict.STALE, Verdict.UNVERIFIED})


def set_values(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ID... KEY=VALUE...",
            autocompletion=complete_id,
            help="Tickets, then what to set: severity=P3, domain=+x,-y; nothing after = clears.",
        ),
    ],
    root: Root = HERE,
    writing: Writing = WRITING,
) -> None:
    """Set metadata: severity=P3 assignee=me."""
    changes = [word for word in words if "=" in word]
    if not changes or len(changes) == len(words):
        what = f"{words[-1]!r} sets nothing" if not changes else "no ticket is named"
        raise UsageError(what, hint="write ID key=value, such as B7-PT-02 severity=P3")
    # Values of one key belong together, however each change spells it.
    values_of: dict[str, tuple[str, list[str]]] = {}
    for change in changes:
        key, _, value = change.partition("=")
        if not squeeze(key):
            raise UsageError(
                f"{change!r} sets nothing", hint="write key=value, such as severity=P3"
            )
        values_of.setdefault(squeeze(key), (key.strip().lower(), []))[1].append(value)
    register = load(root)
    rows = list(
        dict.fromkeys(register.find_entry(word) for word in words if "=" not in word)
    )
    steps = [set_key(key, values) for key, values in values_of.values()]
    what = f"{', '.join(row.id for row in rows)}: {', '.join(changes)}"
    _edit(register, [(row, steps) for row in rows], what, writing)


def tick(
    ticket: Id,
    items: Annotated[
        list[int],
        typer.Argument(
            metavar="N...", min=1, help="Items of the verification checklist, from 1."
        ),
    ],
    root: Root = HERE,
    undo: Annotated[bool, flag("--undo", "Clear the boxes instead.")] = False,
    writing: Writing = WRITING,
) -> None:
    """Tick items of a checklist."""
    register = load(root)
    row = register.find_entry(ticket)
    steps = [tick_items(items, not undo)]
    what = f"{row.id}: {'cleared' if undo else 'ticked'} {', '.join(map(str, items))}"
    _edit(register, [(row, steps)], what, writing)


def close(
    ticket: Id,
    outcome: Annotated[
        str | None,
        option(
            "WORD",
            f"One of {OUTCOMES}; by default what the ticket decided.",
            "--as",
        ),
    ] = None,
    root: Root = HERE,
    of: Annotated[
        str | None, option("ID", "The ticket that it is a duplicate of.")
    ] = None,
    reason: Annotated[str, option("TEXT", "Why, for the record.")] = "",
    force: Annotated[
        bool, flag("--force", "Close as fixed without a measurement; needs a reason.")
    ] = False,
    timeout: Timeout = None,
    writing: Writing = WRITING,
) -> None:
    """Close a ticket; as fixed only if it is verified."""
    register = load(root)
    row = register.find_entry(ticket)
    if outcome is None:
        document = register.document(row)
        keeps = document.remediation and document.remediation.decision == "keep"
        outcome = Outcome.WONT_FIX if keeps else Outcome.FIXED
    spellings = {
        each.value: register.config.vocabulary.outcomes.get(each, ())
        for each in SETTLED_AS
    }
    (word,) = words_of("as", [outcome], spellings, "outcome")
    wanted, why = Outcome(word), one_line("--reason", reason)
    if (wanted is Outcome.DUPLICATE) is not bool(of):
        raise UsageError(
            "--of names the ticket that a duplicate repeats: --as duplicate --of ID"
        )
    if force and wanted is not Outcome.FIXED:
        raise UsageError(
            "--force is for --as fixed alone: nothing else needs a measurement"
        )
    if force and not why:
        raise UsageError("--force needs a --reason, which the ticket keeps")

    measured = None
    is_open = row.status is None or row.status in UNSETTLED
    needs_verdict = (
        wanted is Outcome.FIXED and not force and is_open and register.has_verifier(row)
    )
    if needs_verdict and register.measured(row).verdict in NOT_FRESH:
        from finding_tickets.cli.verify import verify_one

        how = Measuring(timeout=timeout)
        measured = verify_one(root, row.id, how, record=not writing.dry_run)

    def verdict_of(current: Document) -> Verdict:
        # The file may have changed since the index read it: the verdict is of what it says now.
        fresh = Register.of(register.root, register.config, [current])
        found = fresh.measured(fresh.entries[0]).verdict
        return (
            measured.verdict
            if writing.dry_run and measured and found in NOT_FRESH
            else found
        )

    original = original_of(row, register.find_entry(of)) if of else None
    end = Closing(wanted, today(), why, original.id if original else None, force)
    own = [close_ticket(end, verdict_of, register.root)]
    steps = [(row, own)]
    if original:
        own.insert(0, add_duplicate(original.id))
        # Should a crash leave the second file old, the ticket is still open and can be closed once more.
        steps.insert(0, (original, [add_duplicate(row.id)]))
    what = f"{row.id}: closed as {wanted}{f' of {original.id}' if original else ''}"
    _edit(register, steps, what, writing)
    if not writing.dry_run and wanted is Outcome.FIXED:
        _say_what_is_left(register, row)


def _say_what_is_left(register: Register, row: Entry) -> None:
    """Say what a closed ticket leaves to people: a comparison of results, and boxes."""
    from finding_tickets.verify.judge import NOT_COMPARED

    closed = load(register.root)
    document = closed.find(row.path)
    done = closed.measured(document).verification
    if done and NOT_COMPARED in done.reason:
        say(f"{row.id}: {NOT_COMPARED}: what the fix returns may be something else")
    left = [
        str(number)
        for number, item in enumerate(document.checklist, 1)
        if not item.done
    ]
    if left:
        say(
            f"not ticked, for no claim answers it: tickets tick {row.id} {' '.join(left)}"
        )


def _edit(
    register: Register,
    steps: Sequence[tuple[Entry, Sequence[Step]]],
    what: str,
    writing: Writing,
) -> None:
    """Make the steps of each document, all or none; print the files that changed, or a dry run's diff."""
    dry_run = writing.dry_run
    edits = [
        edit_of(row, register.config.vocabulary, today(), *each) for row, each in steps
    ]
    changed = [
        each
        for each in rewrite(register.root, edits, dry_run=dry_run)
        if each.old != each.new
    ]
    if writing.output_format is Format.JSON:
        items = [
            {"path": change.path, "diff": change.diff(), "written": not dry_run}
            for change in changed
        ]
        write_json("edits", items)
    elif changed:
        write("".join(each.diff() if dry_run else f"{each.path}\n" for each in changed))
    if not changed:
        say(f"nothing to change: {what}")
    elif not dry_run:
        say(what)
