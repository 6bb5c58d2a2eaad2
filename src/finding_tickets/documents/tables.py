"""Tables: their rows as texts, by column, with nothing dropped that the Markdown parser would drop."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.inline import code_spans, plain
from finding_tickets.documents.lazy import lazy
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Text

_PIPE = re.compile(rb"(?<!\\)\|")

Span = tuple[int, int]


class Row(NamedTuple):
    """A row whose content ends at ``end``, before the last pipe.

    It is ``overfull`` where it has more cells than the header, and ``text`` where it is a line that Markdown
    has only taken for a row: no pipe is before it, though one is before the header.
    """

    block: Block
    end: int
    overfull: bool
    text: bool


@dataclass(frozen=True, eq=False)
class Table:
    """A table and what stands in it; ``rows`` are all of them, the header first."""

    source: Source
    rows: Sequence[Row]

    @lazy
    def body(self) -> Sequence[Row]:
        """The rows below the header."""
        return self.rows[1:]

    @lazy
    def titles(self) -> list[str]:
        """The titles of the columns, in lower case."""
        return [plain(self.source.raw(*span)).lower() for span in self.spans(self.rows[0])]

    @lazy
    def records(self) -> list[dict[str, Text]]:
        """Each row below the header as ``{column title: cell}``."""
        return [dict(zip(self.titles, self.cells(row), strict=True)) for row in self.body]

    def cells(self, row: Row) -> tuple[Text, ...]:
        """The cells of a row, as many as the header has."""
        return tuple([self.source.text(*span) for span in self.spans(row)])

    def spans(self, row: Row) -> list[Span]:
        """Where the cells of a row stand, with the white space around them.

        For Markdown a pipe ends a cell even inside backticks, and cells beyond the header's are dropped. Here
        pipes inside backticks do not count in a row that has the right number of cells without them; in any
        other, what is left over stays part of the last cell.
        """
        cells = row.block.children
        if row.overfull:
            meant = _meant(self.source.data, row)
            if len(meant) == len(cells):
                return meant
        spans = [(cell.start, cell.end) for cell in cells]
        spans[-1] = (cells[-1].start, max(cells[-1].end, row.end))
        return spans


def table_of(source: Source, block: Block) -> Table:
    """The table that a block is, read once however often it is asked for."""
    table = block.table
    if table is None:
        header = block.children[0]
        piped = source.data[header.start : header.end].lstrip().startswith(b"|")
        rows = [_row(source.data, row, piped=piped) for row in block.children]
        table = block.table = Table(source, rows)
    return table


def _row(data: bytes, block: Block, *, piped: bool) -> Row:
    """The row that a block is, in a table whose header begins with a pipe or not."""
    text = data[block.start : block.end].rstrip()
    closed = text.endswith(b"|") and not text.endswith(rb"\|")
    end = block.start + len(text) - closed
    is_text = piped and not text.lstrip().startswith(b"|")
    return Row(block, end, overfull=end > block.children[-1].end, text=is_text)


def _meant(data: bytes, row: Row) -> list[Span]:
    """The cells of a row if no pipe inside backticks ends one."""
    start = row.block.children[0].start
    # Where code begins and ends, in order: behind an odd number of these marks a pipe is inside.
    marks = [mark for span in code_spans(data, start, row.end) for mark in span]
    pipes = (match.start() for match in _PIPE.finditer(data, start, row.end))
    outside = [pipe for pipe in pipes if bisect_right(marks, pipe) % 2 == 0]
    return list(zip([start, *(pipe + 1 for pipe in outside)], [*outside, row.end], strict=True))


def report_malformed(source: Source, tables: Iterable[Block], paragraphs: Iterable[Block]) -> None:
    """Report the rows that do not mean in Markdown what they seem to mean."""
    for block in tables:
        _report_rows(source, table_of(source, block))
    for block in paragraphs:
        _report_undelimited(source, block)


def _report_rows(source: Source, table: Table) -> None:
    for row in table.body:
        if row.text:
            message = "no blank line between this line and the table above, so Markdown makes it a row"
            source.report("table-text", row.block.start, message)
        elif row.overfull:
            message = f"the row has more cells than the {len(row.block.children)} of its header"
            hint = r"a pipe ends a cell even inside backticks; write it as \|"
            source.report("table-cells", row.block.children[-1].end, message, hint=hint)


def _report_undelimited(source: Source, paragraph: Block) -> None:
    """Report the first of two lines that look like rows, in what Markdown takes for text."""
    text = source.data[paragraph.start : paragraph.end]
    if b"|" not in text:
        return
    lines = [line.strip() for line in text.splitlines()]
    rows = [len(line) > 1 and line.startswith(b"|") and line.endswith(b"|") for line in lines]
    for number, (one, next_one) in enumerate(pairwise(rows), source.line(paragraph.start)):
        if one and next_one:
            message = "rows without a delimiter row, so Markdown makes no table of them"
            hint = "below the header write |---|---|, with as many cells as the header"
            source.report_line("table-delimiter", number, message, hint=hint)
            return
