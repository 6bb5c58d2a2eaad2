"""Finding a document by its ID, and what to suggest where there is none."""

from __future__ import annotations

from collections.abc import Sequence

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.markdown.reading import Document

_SUGGESTIONS = 5


def find(documents: Sequence[Document], document_id: str) -> Document:
    """The document with this ID, in any case.

    Raises:
        UsageError: There is none; the hint names those that come close.
        BadDataError: There are several; the message names their files.
    """
    wanted = document_id.strip().casefold()
    found = [document for document in documents if document.id.value.casefold() == wanted]
    if len(found) > 1:
        files = ", ".join(document.path for document in found)
        raise BadDataError(f"{found[0].id.value} is the ID of several documents: {files}")
    if not found:
        raise UsageError(f"no document has the ID {document_id!r}", hint=_hint(documents, wanted))
    return found[0]


def candidates(documents: Sequence[Document], wanted: str) -> list[str]:
    """The IDs that begin as ``wanted`` does, else those that resemble it, nearest first."""
    from difflib import get_close_matches

    ids = {document.id.value.casefold(): document.id.value for document in documents}
    begin = [name for name in ids if wanted and name.startswith(wanted.casefold())]
    close = begin or get_close_matches(wanted.casefold(), ids, n=_SUGGESTIONS)
    return [ids[name] for name in close[:_SUGGESTIONS]]


def _hint(documents: Sequence[Document], wanted: str) -> str:
    if not documents:
        return "the register is empty"
    names = candidates(documents, wanted)
    return f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"
