"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.output import Format
from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import Words, word_for

HERE = Path()


def complete_id(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs that begin with what was typed, in any case, which they keep; never an error at the prompt."""
    from finding_tickets.register.listing import list_rows

    # A message between two key strokes would only be in the way.
    try:
        rows = list_rows(Path(context.params.get("root") or HERE)).rows
    except Exception:
        return []
    begun = [row.id for row in rows if row.id.casefold().startswith(incomplete.casefold())]
    return [incomplete + name[len(incomplete) :] for name in begun]


def known(option: str, words: Iterable[str] | None, vocabulary: Words, what: str = "") -> list[str]:
    """The words of a vocabulary that the values of an option name by any of their spellings.

    ``what`` says what the vocabulary is of, where the option is not called after that.

    Raises:
        UsageError: A word is none of the vocabulary's.
    """
    found = []
    for word in words or ():
        meant = word_for(word, vocabulary)
        if meant is None:
            raise UsageError(
                f"--{option} {word}: no such {what or option}", hint=f"one of {', '.join(vocabulary)}"
            )
        found.append(meant)
    return found


Root = Annotated[
    Path, typer.Option("--root", metavar="FOLDER", help="The repository or folder that holds the register.")
]
OutputFormat = Annotated[
    Format, typer.Option("--format", case_sensitive=False, help="How the data is printed.")
]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", autocompletion=complete_id, help="Tickets, in any case.")
]
