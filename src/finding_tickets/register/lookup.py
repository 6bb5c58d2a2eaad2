"""Looking documents up by ID: finding one, suggesting similar IDs, and sorting as people count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from finding_tickets.errors import BadDataError, UsageError

_SUGGESTIONS = 5
T = TypeVar("T")


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers within text by their value, however long: ``B2`` before ``B10``."""
    pieces = re.split(r"([0-9]+)", text.upper())
    # Of two numbers without leading zeros, the longer one is greater.
    bare = (piece.lstrip("0") if at % 2 else piece for at, piece in enumerate(pieces))
    return tuple((len(piece) if at % 2 else 0, piece) for at, piece in enumerate(bare))


def find(named: Iterable[tuple[str, str, T]], document_id: str) -> T:
    """What has this ID, in any case, or this path; ``named`` lists IDs, paths and what they belong to.

    Raises:
        UsageError: There is none; the hint names similar ones.
        BadDataError: There are several; the message names their files.
    """
    known = list(named)
    wanted = document_id.strip().casefold()
    path = document_id.strip().removeprefix("./")
    found = [each for each in known if each[0].casefold() == wanted or each[1] == path]
    if len(found) > 1:
        files = ", ".join(path for _, path, _ in found)
        hint = "name one by its path, or give it another ID"
        raise BadDataError(f"{found[0][0]} is the ID of several documents: {files}", hint=hint)
    if not found:
        hint = hint_for([name for name, _, _ in known], wanted)
        raise UsageError(f"no document has the ID {document_id!r}", hint=hint)
    return found[0][2]


def hint_for(ids: Sequence[str], wanted: str) -> str:
    """The hint where no document has an ID: those of ``ids`` that begin with it, or resemble it."""
    if not ids:
        return "the register is empty"
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in ids}
    begin = [name for name in folded if wanted and name.startswith(wanted)]
    close = begin or get_close_matches(wanted, folded, n=_SUGGESTIONS)
    names = [folded[name] for name in close[:_SUGGESTIONS]]
    return f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"
