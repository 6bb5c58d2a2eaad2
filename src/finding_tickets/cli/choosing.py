"""The words by which every command is told which documents it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from finding_tickets.cli.options import complete_id
from finding_tickets.register.query import Facts, Lexicon, select
from finding_tickets.register.query.grammar import SORT
from finding_tickets.register.query.keys import KEYS
from finding_tickets.register.row import Row


def complete_word(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs and the keys of a query that begin with what was typed."""
    keys = (f"{key}:" for key in (*KEYS, SORT))
    return [*complete_id(context, incomplete), *(key for key in keys if key.startswith(incomplete.lower()))]


Query = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        autocompletion=complete_word,
        help="Which documents: IDs, text and conditions such as status:open (docs/queries.md).",
    ),
]


def chosen(query: Iterable[str] | None, facts: Facts) -> list[Row]:
    """The rows that the words of a command line mean; all of them for no words.

    Raises:
        UsageError: The words make no query, or name what does not exist.
    """
    return select(" ".join(query or ()), facts)


def named(words: Iterable[str] | None, facts: Facts) -> list[str]:
    """The words of a command line if there are some and each of them is meant as an ID, else none."""
    ids = list(words or ())
    return ids if all(map(Lexicon(facts).is_id, ids)) else []
