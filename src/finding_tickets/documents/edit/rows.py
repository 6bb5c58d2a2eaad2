"""Setting a row of the metadata, in the form that the document writes its rows in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.edit.lines import line_at, line_end
from finding_tickets.documents.edit.new_row import add_row
from finding_tickets.documents.edit.page import ROWS, Page, Splices
from finding_tickets.documents.edit.values import in_yaml, spellings
from finding_tickets.documents.splice import Splice
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import squeeze

_BLANK = b" \t"
_IN_CODE = frozenset(["severity", "status", "resolution", "agent", "domain"])


def row_of(page: Page, labels: Sequence[str]) -> tuple[str, Text] | None:
    """The row that has one of ``labels``, as it is written there, with its value; one with a value first."""
    wanted = list(map(squeeze, labels))
    rows = [(label, value) for label, value in page.document.metadata.items() if squeeze(label) in wanted]
    rows.sort(key=lambda row: (not row[1].raw, wanted.index(squeeze(row[0]))))
    return rows[0] if rows else None


def set_row(page: Page, labels: Sequence[str], values: Sequence[str]) -> Iterator[Splices]:
    """Ways to give the row with the first of ``labels`` that is there new values; without one, to add it."""
    row = row_of(page, labels)
    yield from (
        _replaced(page, *row, values) if row else add_row(page, labels[0], values, _like(page, labels[0]))
    )


def _replaced(page: Page, label: str, value: Text, values: Sequence[str]) -> Iterator[Splices]:
    table_row = page.enclosing(value, ROWS, label)
    if page.enclosing(value, ["FrontMatter"]):
        yield from _replaced_in_front(page, value, values)
        return
    for text in spellings(values, value.raw or _like(page, label), cell=table_row is not None):
        written = text.encode()
        if not value.raw:
            yield [_filled(page.data, value, table_row, written)]
        elif table_row or not re.search(r"[\r\n]", value.raw):
            yield [Splice(value.span.start, value.span.end, written)]
        else:
            yield [_before_text(page.data, value, written)]


def _replaced_in_front(page: Page, value: Text, values: Sequence[str]) -> Iterator[Splices]:
    start, end = value.span.start, value.span.end
    if start == end:
        start = end = len(page.data[:start].rstrip())
    quoted = value.raw and page.data[start - 1 : start] in (b'"', b"'")
    gap = "" if value.raw else " "
    if quoted and len(values) == 1 and not re.search(r"[\"'\\]", values[0]):
        yield [Splice(start, end, values[0].encode())]
    for text in in_yaml(values, value.raw):
        yield [Splice(start - bool(quoted), end + bool(quoted), (gap + text).encode())]


def _before_text(data: bytes, value: Text, written: bytes) -> Splice:
    """What follows the value's first line is text that somebody wrote: it becomes its own paragraph."""
    line = line_at(data, value.span.start)
    end = line.start + len(data[line.start : line.end].rstrip(_BLANK))
    return Splice(value.span.start, end, written + line_end(data, line.start))


def _filled(data: bytes, value: Text, table_row: Block | None, written: bytes) -> Splice:
    """Put a value where there is none: after the label, or into its cell."""
    if table_row:
        return _in_cell(data, value.span.start, table_row, written)
    start = len(data[: value.span.start].rstrip())
    return Splice(start, start, b" " + written)


def _in_cell(data: bytes, at: int, row: Block, written: bytes) -> Splice:
    """Fill the blank between two pipes, or add the cell that the row ends without."""
    end = row.start + len(data[row.start : row.end].rstrip())
    closed = data[:end].endswith(b"|")
    if at > end or (at == end and closed):
        return Splice(end, end, b" " + written + b" |" if closed else b" | " + written)
    start = len(data[:at].rstrip(_BLANK))
    blank = end - len(data[at:end].lstrip(_BLANK)) - start
    inner = start + min(1, blank)
    return Splice(inner, inner, b" " * (blank < 1) + written + b" " * (blank < 2))


def _like(page: Page, label: str) -> str:
    """A value whose markup a new one takes on: words are code where the document's other words are."""
    if squeeze(label) not in _IN_CODE:
        return ""
    rows = (row_of(page, [name]) for name in ("Severity", "Status", "Ticket ID", "ID"))
    return next((row[1].raw for row in rows if row and row[1].raw), "")
