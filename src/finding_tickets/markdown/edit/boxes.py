"""Ticking the check boxes of a document."""

from __future__ import annotations

import re

from finding_tickets.markdown.edit.page import Page
from finding_tickets.markdown.splice import Splice
from finding_tickets.model.ticket import ChecklistItem

_BOX = re.compile(rb"(?:[-*+]|\d{1,9}[.)])\s+\[([ \t\r\nxX])\]")


def tick(page: Page, item: ChecklistItem, done: bool) -> Splice | None:
    """Tick or clear the box of an item; None where its box cannot be found."""
    at = min(item.span.start, item.span.end)
    holders = [block for block in page.blocks if block.kind == "Item" and block.start <= at <= block.end]
    matches = [_BOX.match(page.data, holder.start) for holder in holders if holder.checked is not None]
    boxes = [match for match in matches if match and match.end() <= at]
    if not boxes:
        return None
    start, end = boxes[-1].span(1)
    return Splice(start, end, b"x" if done else b" ")
