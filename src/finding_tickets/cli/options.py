"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.output import Format
from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import Words, word_for

HERE = Path()


class MeterName(StrEnum):
    """What counts during a run; ``auto`` is a real GPU where one is usable."""

    AUTO = "auto"
    SIMULATED = "simulated"
    CUDA = "cuda"


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

    keys = (f"{key}:" for key in (*KEYS, SORT))
    return [*complete_id(context, incomplete), *(key for key in keys if key.startswith(incomplete.lower()))]


def known(option: str, words: Iterable[str] | None, vocabulary: Words, what: str = "") -> list[str]:
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


def timeout_option(what: str) -> typer.models.OptionInfo:
    """An option that takes seconds; ``what`` is what they limit."""
    option: typer.models.OptionInfo = typer.Option(min=0.1, metavar="SECONDS", help=what)
    return option


def revision_option(what: str) -> typer.models.OptionInfo:
    """An option that takes a commit, a branch, a tag or another git revision."""
    option: typer.models.OptionInfo = typer.Option(metavar="REV", help=what)
    return option


Root = Annotated[
    Path, typer.Option("--root", metavar="FOLDER", help="The repository or folder that holds the register.")
]
OutputFormat = Annotated[
    Format, typer.Option("--format", case_sensitive=False, help="How the data is printed.")
]
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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change as a diff; change nothing.")]
Meter = Annotated[
    MeterName | None, typer.Option(help="What counts during a run, by default what is configured.")
]
Sandbox = Annotated[
    bool,
    typer.Option(
        "--sandbox", help="Run code of the repository without network and where it can write nothing."
    ),
]
