"""Ticking the check boxes of a document."""

from __future__ import annotations

import re

from finding_tickets.documents.edit.page import Page
from finding_tickets.documents.splice import Splice
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import ChecklistItem

_BOX = re.compile(rb"[\s>]*(?:[-*+]|\d{1,9}[.)])\s+\[([ \t\r\nxX])\]")


def tick(page: Page, item: ChecklistItem, done: bool) -> Splice:
    """Tick or clear the box of an item.

    Raises:
        BadDataError: It has none, as far as one can see.
    """
    at = min(item.span.start, item.span.end)
    holders = [block for block in page.blocks if block.kind == "Item" and block.start <= at <= block.end]
    matches = [_BOX.match(page.data, holder.start) for holder in holders if holder.checked is not None]
    boxes = [match for match in matches if match and match.end() <= at]
    if not boxes:
        message = f"no box before {item.text!r} can be found; nothing was changed"
        raise BadDataError(message, file=page.source.path, line=item.span.line, hint="edit the file by hand")
    start, end = boxes[-1].span(1)
    return Splice(start, end, b"x" if done else b" ")
