"""The history of a ticket, as plain text and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from finding_tickets.report.verification import INDENT, Styler, aligned

if TYPE_CHECKING:
    from finding_tickets.ground.git import Commit
    from finding_tickets.register.history import History

SHORT_ID = 10
SHOWN = 20
"""How many of the commits that name a ticket are shown; all of them are in the JSON."""


def history_item(history: History) -> dict[str, object]:
    """The history for JSON; what is not known is null or empty, and ``gaps`` says why."""
    return {
        "created": history.created._asdict() if history.created else None,
        "updated": history.updated._asdict() if history.updated else None,
        "authors": list(history.authors),
        "commits": [commit._asdict() for commit in history.naming],
        "gaps": list(history.gaps),
    }


def history_lines(history: History, style: Styler) -> Iterator[str]:
    """The history for a reader at a terminal; ``style`` colours a text."""
    yield style("History", "bold")
    dated = [("First commit", history.created), ("Last change", history.updated)]
    rows = [(name, *_cells(commit)) for name, commit in dated if commit]
    yield from (INDENT + line for line in aligned(rows))
    if history.authors:
        yield f"{INDENT}Authors: {', '.join(history.authors)}"
    if history.naming:
        yield f"{INDENT}Commits that name it"
        yield from (INDENT * 2 + line for line in aligned(_cells(each) for each in history.naming[:SHOWN]))
    if len(history.naming) > SHOWN:
        yield f"{INDENT * 2}and {len(history.naming) - SHOWN} older ones"
    yield from (f"{INDENT}{gap}" for gap in history.gaps)


def _cells(commit: Commit) -> tuple[str, ...]:
    return commit.date.partition("T")[0], commit.id[:SHORT_ID], commit.author, commit.subject
