"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from finding_tickets.cli.output import Format
from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import Words, word_for

HERE = Path()


# What counts during a run: auto is a real GPU where one is usable.
MeterName = StrEnum("MeterName", ["AUTO", "SIMULATED", "CUDA"])


def complete_id(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs that begin with what was typed, in any case; the typed part keeps its case."""
    from finding_tickets.register.index import list_rows

    # An error message between two key strokes would only be in the way.
    try:
        rows = list_rows(Path(context.params.get("root") or HERE)).rows
    except Exception:
        return []
    matching = [row.id for row in rows if row.id.casefold().startswith(incomplete.casefold())]
    return [incomplete + name[len(incomplete) :] for name in matching]


def complete_word(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs and the keys of a query that begin with what was typed."""
    from finding_tickets.register.query.keys import KEYS
    from finding_tickets.register.query.parser import SORT

    # The colon shows that a value comes next, and keeps the cursor beside it.
    keys = (f"{key}:" for key in (*KEYS, SORT))
    return [*complete_id(context, incomplete), *(key for key in keys if key.startswith(incomplete.lower()))]


def words_of(option: str, words: Iterable[str] | None, vocabulary: Words, what: str = "") -> list[str]:
    """The words of a vocabulary that the values of an option name, in any of their spellings.

    ``what`` names the kind of word where the option has another name.

    Raises:
        UsageError: A word is not in the vocabulary.
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


def option(metavar: str, what: str, *names: str, **more: Any) -> typer.models.OptionInfo:
    """An option with a value that help calls ``metavar``; without ``names`` it has its parameter's name."""
    declared: typer.models.OptionInfo = typer.Option(*names, metavar=metavar, help=what, **more)
    return declared


def flag(name: str, what: str) -> typer.models.OptionInfo:
    """An option without a value; its name is given, since typer would add its opposite."""
    declared: typer.models.OptionInfo = typer.Option(name, help=what)
    return declared


def seconds(what: str) -> typer.models.OptionInfo:
    """An option that takes seconds; ``what`` is what they limit."""
    return option("SECONDS", what, min=0.1)


def format_option(what: str) -> typer.models.OptionInfo:
    """The option that says how a command prints its data, in any case."""
    declared: typer.models.OptionInfo = typer.Option("--format", case_sensitive=False, help=what)
    return declared


Root = Annotated[Path, option("FOLDER", "The repository or folder that holds the register.", "--root")]
OutputFormat = Annotated[Format, format_option("How the data is printed.")]
Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=complete_id, help="A ticket, in any case.")]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID...", autocompletion=complete_id, help="Tickets, in any case.")
]
OptionalIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", autocompletion=complete_id, help="Tickets, in any case."),
]
Query = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        autocompletion=complete_word,
        help="Which documents: IDs, text and conditions such as status:open (docs/queries.md).",
    ),
]
DryRun = Annotated[bool, flag("--dry-run", "Print what would change as a diff; change nothing.")]
Meter = Annotated[
    MeterName | None, typer.Option(help="What counts during a run, by default what is configured.")
]
Sandbox = Annotated[
    bool, flag("--sandbox", "Run code of the repository without network and where it can write nothing.")
]
