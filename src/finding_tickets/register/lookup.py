"""Finding a document by its ID, and what to suggest where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from finding_tickets.errors import BadDataError, UsageError

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.row import Row

T = TypeVar("T")

_SUGGESTIONS = 5


def find(documents: Iterable[Document], document_id: str) -> Document:
    """The document with this ID, in any case, or at this path.

    Raises:
        UsageError: There is none; the hint names those that come close.
        BadDataError: There are several; the message names their files.
    """
    return _find([(each.id.value, each.path, each) for each in documents], document_id)


def find_row(rows: Iterable[Row], document_id: str) -> Row:
    """The row of the document with this ID, in any case, or at this path.

    Raises:
        UsageError: There is none; the hint names those that come close.
        BadDataError: There are several; the message names their files.
    """
    return _find([(each.id, each.path, each) for each in rows], document_id)


def _find(named: Sequence[tuple[str, str, T]], document_id: str) -> T:
    wanted = document_id.strip().casefold()
    path = document_id.strip().removeprefix("./")
    found = [each for each in named if each[0].casefold() == wanted or each[1] == path]
    if len(found) > 1:
        files = ", ".join(path for _, path, _ in found)
        raise BadDataError(f"{found[0][0]} is the ID of several documents: {files}")
    if not found:
        hint = hint_for([name for name, _, _ in named], wanted)
        raise UsageError(f"no document has the ID {document_id!r}", hint=hint)
    return found[0][2]


def hint_for(ids: Sequence[str], wanted: str) -> str:
    """What to say where no document has an ID: which of ``ids`` may be meant."""
    if not ids:
        return "the register is empty"
    names = _candidates(ids, wanted)
    return f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"


def _candidates(ids: Sequence[str], wanted: str) -> list[str]:
    """The IDs that begin as ``wanted`` does, else those that resemble it, nearest first."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in ids}
    begin = [name for name in folded if wanted and name.startswith(wanted)]
    close = begin or get_close_matches(wanted, folded, n=_SUGGESTIONS)
    return [folded[name] for name in close[:_SUGGESTIONS]]
