"""Setting a row of the metadata, in the form that the document writes its rows in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.edit.lines import Line, added_after, line_at, line_end
from finding_tickets.markdown.edit.page import Page, Splices
from finding_tickets.markdown.edit.values import in_yaml, spellings
from finding_tickets.markdown.splice import Splice
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import squeeze

_ROWS = ("TableRow", "TableHead")
_BLANK = b" \t"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKUP = re.compile(rb"[\s>|*_`+\d.)\"'-]*")
_PADDED = re.compile(rb"([^|]*?)( {2,})\|[ \t]*")
# Where a new row goes: after the last of those that stand before it here.
_ORDER = (
    "ticketid",
    "severity",
    "status",
    "resolution",
    "batch",
    "agent",
    "domain",
    "assignee",
    "coderepository",
    "created",
    "updated",
)
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
    yield from _replaced(page, *row, values) if row else _added(page, labels[0], values)


def _replaced(page: Page, label: str, value: Text, values: Sequence[str]) -> Iterator[Splices]:
    table_row = _enclosing(page, value, _ROWS, label)
    if _enclosing(page, value, ("FrontMatter",)):
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
    """Put a value where there is none: its place is the blank between two pipes, or after the label."""
    start, end = sorted((value.span.start, value.span.end))
    if table_row is None:
        start = len(data[:start].rstrip())
        return Splice(start, start, b" " + written)
    row_end = table_row.start + len(data[table_row.start : table_row.end].rstrip())
    if start > row_end or (start == row_end and data[:row_end].endswith(b"|")):
        gap = b" " if data[:row_end].endswith(b"|") else b" | "
        return Splice(row_end, row_end, gap + written + (b" |" if gap == b" " else b""))
    start -= len(data[:start]) - len(data[:start].rstrip(_BLANK))
    end += len(data[end:row_end]) - len(data[end:row_end].lstrip(_BLANK))
    blank = data[start:end]
    before, after = (b"", b"") if len(blank) > 1 else (b"", b" ")
    if not blank:
        before = b" "
    at = start + min(1, len(blank))
    return Splice(at, at, before + written + after)


def _added(page: Page, label: str, values: Sequence[str]) -> Iterator[Splices]:
    rows = list(page.document.metadata.items())
    in_front = any(_enclosing(page, value, ("FrontMatter",)) for _, value in rows)
    for text in in_yaml(values, "") if in_front else spellings(values, _like(page, label), cell=True):
        for sibling in _siblings(rows, label):
            splice = _beside(page, *sibling, label, text)
            if splice:
                yield [splice]
    for text in spellings(values, _like(page, label), cell=False):
        yield [_below_title(page, f"**{label}:** {text}".encode())]


def _siblings(rows: Sequence[tuple[str, Text]], label: str) -> Iterator[tuple[str, Text]]:
    """The rows that a new one may follow, the best first."""
    key = squeeze(label)
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else ()
    preceding = [row for row in rows if squeeze(row[0]) in before]
    preceding.sort(key=lambda row: _ORDER.index(squeeze(row[0])))
    yield from reversed(preceding)
    yield from (row for row in reversed(rows) if row not in preceding)


def _like(page: Page, label: str) -> str:
    """A value whose markup a new one takes on: words are code where the document's other words are."""
    if squeeze(label) not in _IN_CODE:
        return ""
    rows = (row_of(page, [name]) for name in ("Severity", "Status", "Ticket ID", "ID"))
    return next((row[1].raw for row in rows if row and row[1].raw), "")


def _beside(page: Page, sibling: str, value: Text, label: str, text: str) -> Splice | None:
    """A new row below ``sibling`` that is written as that one is."""
    data, row = page.data, _enclosing(page, value, _ROWS, sibling)
    start, end = sorted((value.span.start, value.span.end))
    line = line_at(data, row.start if row else start)
    at = data.find(sibling.encode(), line.start, line.end)
    prefix, after = data[line.start : at], at + len(sibling.encode())
    if at < 0 or (after > start and not row) or not _MARKUP.fullmatch(prefix):
        return None
    between = _between(data[after : min(start, line.end)], len(sibling) - len(label), row is not None)
    named = label.lower() if sibling.islower() else label
    written = prefix + named.encode() + between + text.encode()
    if row:
        closed = data[line.start : line.end].rstrip().endswith(b"|")
        below = line_at(data, line.after) if row.kind == "TableHead" else line
        return _line_below(data, below, written + (b" |" if closed else b""))
    item = _enclosing(page, value, ("Item",))
    last = page.source.trimmed(item.start, item.end)[1] if item else max(end, after)
    below = line_at(data, last)
    trailing = data[max(end, after) : line.end] if not value.raw or below.start == line.start else b""
    written += trailing if not trailing.strip() else b""
    alone = item is None and _alone(page, value)
    return _line_below(data, below, *([b"", written] if alone else [written]))


def _between(found: bytes, wider: int, in_table: bool) -> bytes:
    """What stands between a label and its value, for a label that is ``wider`` characters shorter."""
    padded = _PADDED.fullmatch(found.rstrip(_BLANK)) if in_table else None
    if padded:
        return padded[1] + b" " * max(1, len(padded[2]) + wider) + b"| "
    return found.rstrip(_BLANK + b"\"'") + b" "


def _line_below(data: bytes, line: Line, *texts: bytes) -> Splice:
    return Splice(line.after, line.after, added_after(data, line, *texts))


def _alone(page: Page, value: Text) -> bool:
    """Whether the document writes each of its labelled lines as a paragraph."""
    holders = [
        _enclosing(page, other, ("Paragraph",))
        for other in page.document.metadata.values()
        if other is not value
    ]
    own = _enclosing(page, value, ("Paragraph",))
    others = [holder for holder in holders if holder]
    return own is not None and bool(others) and all(holder is not own for holder in others)


def _below_title(page: Page, text: bytes) -> Splice:
    """A first row for a document without any: below its title, else at its beginning."""
    data = page.data
    heading = next((part.heading for part in page.parts if part.heading), None)
    if heading is None:
        start = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
        return Splice(start, start, text + line_end(data, start) * 2)
    last = line_at(data, page.source.trimmed(heading.start, heading.end)[1])
    follows = data[last.after : line_at(data, last.after).end].strip()
    return _line_below(data, last, *([b"", text, b""] if follows else [b"", text]))


def _enclosing(page: Page, value: Text, kinds: Sequence[str], label: str = "") -> Block | None:
    """The innermost block of these kinds that a value stands in, or that ends where the value would begin.

    Where a row ends without a cell for its value, the next one begins: the ``label`` tells them apart.
    """
    at, named = min(value.span.start, value.span.end), label.encode()
    found = [block for block in page.blocks if block.kind in kinds and block.start <= at <= block.end]
    own = [block for block in found if named in page.data[block.start : block.end]]
    within = [block for block in own if at < block.end]
    best = within or own
    return best[-1] if best else None
