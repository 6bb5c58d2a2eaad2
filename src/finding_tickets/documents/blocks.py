"""Markdown text as a tree of blocks, each with the bytes it covers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyromark

from finding_tickets.documents.front_matter import front_matter

if TYPE_CHECKING:
    from finding_tickets.documents.tables import Table

_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_TASKLISTS)
_TABLE = ("Table", "TableHead", "TableRow", "TableCell")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_DELIMITERS = re.compile(rb"^[ >]*\|[|: \t-]*\r?$", re.MULTILINE)
_CONTAINERS = frozenset(["List", "Item", "BlockQuote"])
_BLOCKS = frozenset(["Heading", "Paragraph", "List", "Item", "CodeBlock", "BlockQuote", "HtmlBlock", *_TABLE])

DEEPEST = 100
"""So many blocks may stand one within another: more than people write, few enough to be walked in any way."""
TOO_DEEP = "TooDeep"


class Block:
    """A block of Markdown: the bytes ``[start, end)``, of which ``[first, last)`` is its text, if any.

    Attributes:
        kind: The parser's name for it: Heading, Paragraph, List, Item, CodeBlock, BlockQuote, HtmlBlock,
            Rule, FrontMatter, Table, TableHead, TableRow or TableCell.
        level: The level of a heading, 0 for any other block.
        info: The language of a fence, and what follows it.
        code: The content of a code block.
        checked: Whether a check box is ticked; None for what has none.
        table: What was read in a table, once somebody has asked for it.
    """

    __slots__ = (
        "checked",
        "children",
        "code",
        "end",
        "first",
        "info",
        "kind",
        "last",
        "level",
        "start",
        "table",
    )

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = self.first = self.last = end
        self.level = 0
        self.info = self.code = ""
        self.checked: bool | None = None
        self.table: Table | None = None
        self.children: list[Block] = []


def parse(data: bytes) -> list[Block]:
    """The top-level blocks of UTF-8 ``data``."""
    # The parser takes a byte order mark for text, which would hide a heading on the first line, and front
    # matter for a heading.
    first, last, skipped = front_matter(data)
    root = Block("Document", 0, len(data))
    if first < last:
        root.children.append(Block("FrontMatter", first, last))
    current, outer = root, list[Block]()
    # Empty lines in their place leave every offset as it is.
    text = _as_parsed(b"\n" * skipped + data[skipped:]).decode()
    events: Iterable[tuple[Any, Any]] = _PARSER.events_with_range(text, merge_text=True)
    for event, span in events:
        what, detail = (event, "") if event.__class__ is str else event.popitem()
        if what == "Start":
            kind: str = detail if detail.__class__ is str else next(iter(detail))
            if kind in _BLOCKS:
                block = Block(kind, span["start"], span["end"])
                if detail.__class__ is dict:
                    _detail(block, detail[kind])
                # What is too deep is parsed on, in a tree of its own that nobody reads.
                deep = len(outer) >= DEEPEST and kind in _CONTAINERS
                current.children.append(Block(TOO_DEEP, block.start, block.end) if deep else block)
                outer.append(current)
                current = block
                continue
        elif what == "End":
            if (detail if detail.__class__ is str else next(iter(detail))) in _BLOCKS:
                current = outer.pop()
                continue
        elif what == "Text":
            if current.kind == "CodeBlock":
                current.code += detail
        elif what == "Rule":
            current.children.append(Block(what, span["start"], span["end"]))
            continue
        elif what == "TaskListMarker":
            # In a loose list the marker stands in the paragraph of its item.
            (current if current.kind == "Item" else outer[-1]).checked = bool(detail)
            continue
        # The pieces of a text come in its order, and what has pieces of its own once more at its end.
        if current.first == current.last:
            current.first = span["start"]
        current.last = span["end"]
    return root.children


def _as_parsed(data: bytes) -> bytes:
    """As many bytes that mean to the parser what ``data`` means in Markdown."""
    # The parser takes a lone carriage return for the end of some lines and not of others.
    text = _LONE_RETURN.sub(b"\n", data)
    # It knows no tabs in the row that delimits a header, where they are white space as any other.
    if b"\t" in text:
        text = _DELIMITERS.sub(lambda row: row[0].replace(b"\t", b" "), text)
    return text


def walk(blocks: Iterable[Block], *, rows: bool = True) -> Iterator[Block]:
    """Every block of the trees, parents before children, in the order of the file.

    Without ``rows`` tables count as leaves.
    """
    waiting = list(blocks)[::-1]
    while waiting:
        block = waiting.pop()
        yield block
        if block.children and (rows or block.kind != "Table"):
            waiting.extend(reversed(block.children))


def _detail(block: Block, detail: Any) -> None:
    """Add what the parser says of a block beside its kind."""
    if block.kind == "Heading":
        block.level = int(detail["level"][1:])
    elif block.kind == "CodeBlock" and isinstance(detail, dict):
        block.info = detail["Fenced"]
