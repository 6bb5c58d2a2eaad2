"""Tables: their rows as texts, by column, with nothing dropped that the Markdown parser would drop."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from finding_tickets.markdown.blocks import Block, walk
from finding_tickets.markdown.inline import code_spans, plain
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Text

_PIPE = re.compile(rb"(?<!\\)\|")


def cells(source: Source, row: Block) -> tuple[Text, ...]:
    """The cells of a row, as many as its header has."""
    return tuple(source.text(*span) for span in cell_spans(source, row))


def cell_spans(source: Source, row: Block) -> list[tuple[int, int]]:
    """Where the cells of a row stand, with the white space around them.

    For Markdown a pipe ends a cell even inside backticks, and cells beyond the header's are dropped. Here
    pipes inside backticks do not count in a row that has the right number of cells without them; in any
    other, what is left over stays part of the last cell.
    """
    end = _end(source, row)
    if end > row.children[-1].end:
        meant = _meant(source.data, row, end)
        if len(meant) == len(row.children):
            return meant
    spans = [(cell.start, cell.end) for cell in row.children]
    spans[-1] = (spans[-1][0], max(spans[-1][1], end))
    return spans


def _meant(data: bytes, row: Block, end: int) -> list[tuple[int, int]]:
    """The cells of a row if no pipe inside backticks ends one."""
    start = row.children[0].start
    # Where code begins and ends, in order: behind an odd number of these marks a pipe is inside.
    marks = [mark for span in code_spans(data, start, end) for mark in span]
    pipes = (match.start() for match in _PIPE.finditer(data, start, end))
    outside = [pipe for pipe in pipes if bisect_right(marks, pipe) % 2 == 0]
    return list(zip([start, *(pipe + 1 for pipe in outside)], [*outside, end], strict=True))


def body_rows(table: Block) -> list[Block]:
    """The rows of a table below its header."""
    return [row for row in table.children if row.kind == "TableRow"]


def columns(source: Source, table: Block) -> list[str]:
    """The titles of a table's columns, in lower case."""
    return [plain(source.raw(*span)).lower() for span in cell_spans(source, table.children[0])]


def records(source: Source, table: Block) -> Iterator[dict[str, Text]]:
    """Each row below the header as ``{column title: cell}``."""
    titles = columns(source, table)
    for row in body_rows(table):
        yield dict(zip(titles, cells(source, row), strict=True))


def begins_with_pipe(source: Source, row: Block) -> bool:
    """Whether a row does; one that does not, below a header that does, is text that Markdown takes in."""
    return source.data[row.start : row.end].lstrip().startswith(b"|")


def report_malformed(source: Source, blocks: Iterable[Block]) -> None:
    """Report the rows that do not mean in Markdown what they seem to mean."""
    for block in walk(blocks):
        if block.kind == "Table":
            _report_rows(source, block)
        elif block.kind == "Paragraph":
            _report_undelimited(source, block)


def _report_rows(source: Source, table: Block) -> None:
    piped = begins_with_pipe(source, table.children[0])
    for row in body_rows(table):
        if piped and not begins_with_pipe(source, row):
            message = "no blank line between this line and the table above, so Markdown makes it a row"
            source.report("table-text", row.start, message)
        elif _end(source, row) > row.children[-1].end:
            message = f"the row has more cells than the {len(row.children)} of its header"
            hint = r"a pipe ends a cell even inside backticks; write it as \|"
            source.report("table-cells", row.children[-1].end, message, hint=hint)


def _report_undelimited(source: Source, paragraph: Block) -> None:
    """Report the first of two lines that look like rows, in what Markdown takes for text."""
    first = source.line(paragraph.start)
    lines = [line.strip() for line in source.data[paragraph.start : paragraph.end].splitlines()]
    rows = [len(line) > 1 and line.startswith(b"|") and line.endswith(b"|") for line in lines]
    for number, (one, next_one) in enumerate(pairwise(rows), first):
        if one and next_one:
            message = "rows without a delimiter row, so Markdown makes no table of them"
            hint = "below the header write |---|---|, with as many cells as the header"
            source.report_line("table-delimiter", number, message, hint=hint)
            return


def _end(source: Source, row: Block) -> int:
    """Where the content of a row ends: before the last pipe."""
    text = source.data[row.start : row.end].rstrip()
    closed = text.endswith(b"|") and not text.endswith(rb"\|")
    return row.start + len(text) - closed
