"""The history of a ticket in git, as JSON and for readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from finding_tickets.report.text import INDENT, aligned, fields_of

if TYPE_CHECKING:
    from finding_tickets.ground.git import Commit
    from finding_tickets.register.history import History

SHORT_ID = 10
# How many commits of a list are shown; all of them are in the JSON.
SHOWN = 20


def history_item(history: History) -> dict[str, object]:
    """Return the history for JSON; what is not known is null or empty, and ``gaps`` says why."""
    verdicts = [
        {
            "commit": each.commit.id,
            "date": each.commit.date,
            **fields_of(each, "file", "verdict"),
        }
        for each in history.verdicts
    ]
    return {
        "created": history.created._asdict() if history.created else None,
        "updated": history.updated._asdict() if history.updated else None,
        "commits": [commit._asdict() for commit in history.naming],
        "verdicts": verdicts,
        **fields_of(history, "authors", "gaps"),
    }


def history_lines(history: History) -> Iterator[str]:
    """Yield the lines about the history for a reader."""
    dated = [("First commit", history.created), ("Last change", history.updated)]
    yield from aligned((name, *_cells(commit)) for name, commit in dated if commit)
    if history.authors:
        yield f"Authors: {', '.join(history.authors)}"
    yield from _listed(
        "Commits that name it", [_cells(commit) for commit in history.naming]
    )
    yield from _listed(
        "Verdicts recorded", [(*_cells(v.commit), v.verdict) for v in history.verdicts]
    )
    yield from history.gaps


def _cells(commit: Commit) -> tuple[str, ...]:
    """Return what a line says of a commit."""
    return (
        commit.date.partition("T")[0],
        commit.id[:SHORT_ID],
        commit.author,
        commit.subject,
    )


def _listed(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a title with the first rows below it; nothing without rows."""
    if not rows:
        return
    yield title
    for line in aligned(rows[:SHOWN]):
        yield INDENT + line
    if len(rows) > SHOWN:
        yield f"{INDENT}and {len(rows) - SHOWN} older ones"
