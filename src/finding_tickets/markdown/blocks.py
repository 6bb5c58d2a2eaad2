"""Markdown text as a tree of blocks, each with the bytes it covers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyromark

from finding_tickets.markdown.front_matter import front_matter

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
    """

    __slots__ = ("checked", "children", "code", "end", "first", "info", "kind", "last", "level", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = self.first = self.last = end
        self.level = 0
        self.info = self.code = ""
        self.checked: bool | None = None
        self.children: list[Block] = []


def parse(data: bytes) -> list[Block]:
    """The top-level blocks of UTF-8 ``data``."""
    # The parser takes a byte order mark for text, which would hide a heading on the first line, and front
    # matter for a heading.
    first, last, skipped = front_matter(data)
    root = Block("Document", 0, len(data))
    if first < last:
        root.children.append(Block("FrontMatter", first, last))
    current: Block = root
    outer: list[Block] = []
    text = _as_parsed(data[skipped:]).decode()
    events: Iterable[tuple[Any, Any]] = _PARSER.events_with_range(text, merge_text=True)
    for event, span in events:
        what, detail = event.popitem() if isinstance(event, dict) else (event, "")
        name = detail if isinstance(detail, str) else _name(detail)
        if what == "End" and name in _BLOCKS:
            current = outer.pop()
            continue
        start, end = span["start"] + skipped, span["end"] + skipped
        if what == "Start" and name in _BLOCKS:
            outer.append(current)
            current = _opened(name, detail, start, end, outer)
        elif what == "Rule":
            current.children.append(Block(what, start, end))
        elif what == "TaskListMarker":
            # In a loose list the marker stands in the paragraph of its item.
            (current if current.kind == "Item" else outer[-1]).checked = bool(detail)
        else:
            # The pieces of a text come in its order, and what has pieces of its own once more at its end.
            if current.first == current.last:
                current.first = start
            current.last = end
            if what == "Text" and current.kind == "CodeBlock":
                current.code += detail
    return root.children


def _as_parsed(data: bytes) -> bytes:
    """As many bytes that mean to the parser what ``data`` means in Markdown."""
    # The parser takes a lone carriage return for the end of some lines and not of others.
    text = _LONE_RETURN.sub(b"\n", data)
    # It knows no tabs in the row that delimits a header, where they are white space as any other.
    if b"\t" in text:
        text = _DELIMITERS.sub(lambda row: row[0].replace(b"\t", b" "), text)
    return text


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Every block of the trees, parents before children, in the order of the file."""
    waiting = list(blocks)[::-1]
    while waiting:
        block = waiting.pop()
        yield block
        if block.children:
            waiting.extend(reversed(block.children))


def _opened(name: str, detail: Any, start: int, end: int, outer: list[Block]) -> Block:
    """A new block within the last of ``outer``."""
    block = Block(name, start, end)
    if name == "Heading":
        block.level = int(detail[name]["level"][1:])
    elif name == "CodeBlock" and isinstance(detail[name], dict):
        block.info = detail[name]["Fenced"]
    # What is too deep is parsed on, in a tree of its own that nobody reads.
    deep = len(outer) > DEEPEST and name in _CONTAINERS
    outer[-1].children.append(Block(TOO_DEEP, start, end) if deep else block)
    return block


def _name(detail: Any) -> str:
    """The name of what opens or closes with details; empty where there is no name."""
    return next(iter(detail)) if isinstance(detail, dict) else ""
