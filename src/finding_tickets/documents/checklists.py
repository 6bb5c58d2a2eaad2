"""Check boxes: the categories of a finding and the items of its verification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.entries import text_of
from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.roles import Role
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Category, ChecklistItem

_CHECKED = (Role.VERIFICATION, Role.RESOLUTION, Role.CORRECTION)


def checked(sections: Iterable[Part]) -> Iterator[Part]:
    """The parts whose check boxes are checks: the verification, what was done, and parts so headed within."""
    sections = list(sections)
    for part in sections:
        role = part.role
        if role in _CHECKED or (len(sections) == 1 and part.heading and part.heading.level == 1):
            yield part
        elif role is not Role.CROSS_REVIEW and _has_boxes(part):
            yield from checked(part.parts)


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


def _has_boxes(part: Part) -> bool:
    return any(item.checked is not None for item in part.by_kind["Item"])


def _boxes(part: Part) -> Iterator[tuple[Block, Text]]:
    for item in part.by_kind["Item"]:
        if item.checked is not None:
            yield item, part.source.text(*text_of(item))
