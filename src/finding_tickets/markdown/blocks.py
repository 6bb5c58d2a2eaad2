"""Markdown text as a tree of blocks, each with the bytes it covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyromark

from finding_tickets.markdown.front_matter import front_matter

_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_TASKLISTS)
_TABLE = ("Table", "TableHead", "TableRow", "TableCell")
_BLOCKS = frozenset(["Heading", "Paragraph", "List", "Item", "CodeBlock", "BlockQuote", "HtmlBlock", *_TABLE])


@dataclass
class Block:
    """A block of Markdown: the bytes ``[start, end)``, of which ``[first, last)`` is its text, if any.

    ``kind`` is the parser's name for it: Heading, Paragraph, List, Item, CodeBlock, BlockQuote, HtmlBlock,
    Rule, FrontMatter, Table, TableHead, TableRow or TableCell. ``info`` is a heading's level or a fence's
    language; ``checked`` is None for an item without a check box.
    """

    kind: str
    start: int
    end: int
    info: str = ""
    checked: bool | None = None
    first: int = field(init=False)
    last: int = field(init=False)
    children: list[Block] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = self.last = self.end

    @property
    def level(self) -> int:
        """The level of a heading, 0 for any other block."""
        return int(self.info[1:]) if self.kind == "Heading" else 0

    @property
    def code(self) -> str:
        """The content of a code block."""
        return "".join(self.lines)

    def cover(self, start: int, end: int) -> None:
        """Extend the block's text to ``[start, end)``."""
        first_piece = self.first == self.last
        self.first = start if first_piece else min(self.first, start)
        self.last = end if first_piece else max(self.last, end)


def parse(data: bytes) -> list[Block]:
    """The top-level blocks of UTF-8 ``data``."""
    # The parser takes a byte order mark for text, which would hide a heading on the first line, and front
    # matter for a heading.
    first, last, skipped = front_matter(data)
    root = Block("Document", 0, len(data))
    if first < last:
        root.children.append(Block("FrontMatter", first, last))
    open_blocks = [root]
    for event, span in _PARSER.events_with_range(data[skipped:].decode()):
        _take(event, span["start"] + skipped, span["end"] + skipped, open_blocks)
    return root.children


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Every block of the trees, parents before children, in the order of the file."""
    waiting = list(blocks)[::-1]
    while waiting:
        block = waiting.pop()
        yield block
        waiting.extend(reversed(block.children))


def _take(event: Any, start: int, end: int, open_blocks: list[Block]) -> None:
    """Account for one event of the parser: a block opens, closes, or has more text."""
    current = open_blocks[-1]
    what, detail = next(iter(event.items())) if isinstance(event, dict) else (event, None)
    name = _name(detail)
    if what == "Start" and name in _BLOCKS:
        block = Block(name, start, end, _info(name, detail))
        current.children.append(block)
        open_blocks.append(block)
    elif what == "End" and name in _BLOCKS:
        open_blocks.pop()
    elif what == "TaskListMarker":
        _item(open_blocks).checked = bool(detail)
    elif what == "Rule":
        current.children.append(Block("Rule", start, end))
    else:
        current.cover(start, end)
        if current.kind == "CodeBlock":
            current.lines.append(str(detail))


def _item(open_blocks: list[Block]) -> Block:
    """The list item that is being read: in a loose list the marker stands in its paragraph."""
    return next(block for block in reversed(open_blocks) if block.kind == "Item")


def _name(detail: Any) -> str:
    return next(iter(detail)) if isinstance(detail, dict) else str(detail)


def _info(name: str, detail: Any) -> str:
    if name == "Heading":
        return str(detail["Heading"]["level"])
    if name == "CodeBlock" and isinstance(detail["CodeBlock"], dict):
        return str(detail["CodeBlock"]["Fenced"])
    return ""
