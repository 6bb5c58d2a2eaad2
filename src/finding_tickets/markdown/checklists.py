"""Check boxes: the categories of a finding and the items of its verification."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.markdown.blocks import Block, walk
from finding_tickets.markdown.entries import text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Category, ChecklistItem


def read_categories(part: Part) -> tuple[Category, ...]:
    """Every category of the list, ticked or not."""
    return tuple(
        Category(raw=text.raw, span=text.span, name=plain(text.raw), ticked=bool(item.checked))
        for item, text in _boxes(part)
    )


def read_checklist(part: Part) -> tuple[ChecklistItem, ...]:
    """Every item with a check box."""
    return tuple(
        ChecklistItem(raw=text.raw, span=text.span, text=plain(text.raw), done=bool(item.checked))
        for item, text in _boxes(part)
    )


def _boxes(part: Part) -> Iterator[tuple[Block, Text]]:
    for block in walk(part.blocks):
        if block.kind == "Item" and block.checked is not None:
            yield block, part.source.text(*text_of(block))
