"""Markdown text as a tree of blocks, each with the bytes it covers; tables, and the front matter above it.

Front matter is what stands between a line of ``---`` at the very beginning of a file and the next such line
(or ``...``). Of a table nothing is dropped that the Markdown parser would drop.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyromark

from finding_tickets.documents.source import Excerpt, Source, code_spans

_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_TASKLISTS)
_TABLE = ("Table", "TableHead", "TableRow", "TableCell")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_DELIMITERS = re.compile(rb"^[ >]*\|[|: \t-]*\r?$", re.MULTILINE)
_CONTAINERS = frozenset(["List", "Item", "BlockQuote"])
_BLOCKS = frozenset(["Heading", "Paragraph", "List", "Item", "CodeBlock", "BlockQuote", "HtmlBlock", *_TABLE])

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_END = rb"(?:\r\n|\r|\n)"
_FRONT_MATTER = re.compile(
    rb"---[ \t]*"
    + _END
    + rb"(?P<text>[\w\"'][^\r\n:]*:(?:[ \t][^\r\n]*)?"
    + _END
    + rb"(?:[^\r\n]*"
    + _END
    + rb")*?)(?:---|\.\.\.)[ \t]*(?:"
    + _END
    + rb"|\Z)"
)

DEEPEST = 100
"""So many blocks may stand one within another: more than people write, few enough to be walked in any way."""
TOO_DEEP = "TooDeep"


@dataclass(eq=False, slots=True)
class Block:
    """A block of Markdown: the bytes ``[start, end)``, of which ``[first, last)`` is its text, if any.

    Attributes:
        kind: The parser's name for it: Heading, Paragraph, List, Item, CodeBlock, BlockQuote, HtmlBlock,
            Rule, FrontMatter, Table, TableHead, TableRow or TableCell.
        level: The level of a heading, 0 for any other block.
        info: The language of a fence, and what follows it.
        code: The content of a code block.
        checked: Whether a check box is ticked; None for what has none.
        table: The table that was read in it, once somebody has asked for it.
    """

    kind: str
    start: int
    end: int
    first: int
    last: int
    level: int = 0
    info: str = ""
    code: str = ""
    checked: bool | None = None
    table: MarkdownTable | None = None
    children: list[Block] = field(default_factory=list)


def parse(data: bytes) -> list[Block]:
    """The top-level blocks of UTF-8 ``data``."""
    # The parser takes a byte order mark for text, which would hide a heading on the first line, and front
    # matter for a heading.
    skipped = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    root = Block("Document", 0, len(data), 0, 0)
    front_matter = _FRONT_MATTER.match(data, skipped)
    if front_matter:
        start, end = front_matter.span("text")
        root.children.append(Block("FrontMatter", start, end, end, end))
        skipped = front_matter.end()
    current, outer = root, list[Block]()
    text = _as_parsed(data, skipped)
    events: Iterable[tuple[Any, Any]] = _PARSER.events_with_range(text, merge_text=True)
    what: str
    detail: Any
    for event, span in events:
        what, detail = (event, "") if event.__class__ is str else event.popitem()
        if what == "Start":
            kind: str = detail if detail.__class__ is str else next(iter(detail))
            if kind in _BLOCKS:
                start, end = span["start"], span["end"]
                block = Block(kind, start, end, end, end)
                if kind == "Heading":
                    block.level = int(detail[kind]["level"][1:])
                elif kind == "CodeBlock" and isinstance(detail, dict) and isinstance(detail[kind], dict):
                    block.info = detail[kind]["Fenced"]
                # What is too deep is parsed on, in a tree of its own that nobody reads.
                deep = len(outer) >= DEEPEST and kind in _CONTAINERS
                current.children.append(Block(TOO_DEEP, start, end, end, end) if deep else block)
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
            start, end = span["start"], span["end"]
            current.children.append(Block(what, start, end, end, end))
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


def _as_parsed(data: bytes, skipped: int) -> str:
    """Text of as many bytes that means to the parser what ``data`` means in Markdown."""
    # Empty lines in the place of what is skipped leave every offset as it is. The parser takes a lone
    # carriage return for the end of some lines only, and knows no tabs in the row below a table's header.
    meant = _LONE_RETURN.sub(b"\n", b"\n" * skipped + data[skipped:])
    if b"\t" in meant:
        meant = _DELIMITERS.sub(lambda row: row[0].replace(b"\t", b" "), meant)
    return meant.decode()


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


_PIPE = re.compile(rb"(?<!\\)\|")


class TableRow(NamedTuple):
    """A row whose content ends at ``end``, before the last pipe.

    It is ``overfull`` where it has more cells than the header, and ``text`` where it is a line that Markdown
    has only taken for a row: no pipe is before it, though one is before the header.
    """

    block: Block
    end: int
    overfull: bool
    text: bool


class MarkdownTable:
    """A table and what stands in it; ``rows`` are all of them, the header first, and ``body`` the others."""

    def __init__(self, source: Source, block: Block) -> None:
        self.source = source
        self.rows: list[TableRow] = []
        piped = False
        for row in block.children:
            text = source.data[row.start : row.end].rstrip()
            closed = text.endswith(b"|") and not text.endswith(rb"\|")
            end = row.start + len(text) - closed
            opened = text.lstrip().startswith(b"|")
            piped = piped if self.rows else opened
            self.rows.append(TableRow(row, end, end > row.children[-1].end, piped and not opened))
        self.body = self.rows[1:]

    @cached_property
    def titles(self) -> list[str]:
        """The titles of the columns, in lower case."""
        return [cell.plain.lower() for cell in self.cells(self.rows[0])]

    @cached_property
    def records(self) -> list[dict[str, Excerpt]]:
        """Each row below the header as ``{column title: cell}``."""
        return [dict(zip(self.titles, self.cells(row), strict=True)) for row in self.body]

    def column(self, pattern: re.Pattern[str], *but: str | None) -> str | None:
        """The first title that matches, beside some others; None where no column has one."""
        return next((title for title in self.titles if title not in but and pattern.fullmatch(title)), None)

    def cells(self, row: TableRow) -> list[Excerpt]:
        """The cells of a row, as many as the header has.

        For Markdown a pipe ends a cell even inside backticks, and cells beyond the header's are dropped. Here
        pipes inside backticks do not count in a row that has the right number of cells without them; in any
        other, what is left over stays part of the last cell.
        """
        cells = [(cell.start, cell.end) for cell in row.block.children]
        cells[-1] = (cells[-1][0], max(cells[-1][1], row.end))
        if row.overfull:
            data, start = self.source.data, cells[0][0]
            # Where code begins and ends, in order: behind an odd number of these marks a pipe is inside.
            marks = [mark for span in code_spans(data, start, row.end) for mark in span]
            pipes = [match.start() for match in _PIPE.finditer(data, start, row.end)]
            outside = [pipe for pipe in pipes if bisect_right(marks, pipe) % 2 == 0]
            if len(outside) + 1 == len(cells):
                cells = list(zip([start, *(pipe + 1 for pipe in outside)], [*outside, row.end], strict=True))
        return [self.source.text(*cell) for cell in cells]


def table_of(source: Source, block: Block) -> MarkdownTable:
    """The table that a block is, read once however often it is asked for."""
    if block.table is None:
        block.table = MarkdownTable(source, block)
    return block.table


def row_of_record(record: dict[str, Excerpt]) -> Excerpt:
    """The text from the first to the last cell of a row."""
    first, *_, last = [*record.values(), *record.values()]
    return first.source.text(first.start, last.end)
