"""A row that the metadata does not have yet, written as the document writes the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finding_tickets.documents.edit.lines import Line, added_after, line_at, line_end
from finding_tickets.documents.edit.page import ROWS, Page, Splices
from finding_tickets.documents.edit.values import in_yaml, spellings
from finding_tickets.documents.splice import Splice
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import squeeze

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


def add_row(page: Page, label: str, values: Sequence[str], like: str) -> Iterator[Splices]:
    """Ways to add a row, in the markup of ``like``: below another row, else below the title."""
    rows = list(page.document.metadata.items())
    in_front = any(page.enclosing(value, ["FrontMatter"]) for _, value in rows)
    for text in in_yaml(values, "") if in_front else spellings(values, like, cell=True):
        for sibling in _siblings(rows, label):
            splice = _beside(page, *sibling, label, text)
            if splice:
                yield [splice]
    for text in spellings(values, like, cell=False):
        yield [_below_title(page, f"**{label}:** {text}".encode())]


def _siblings(rows: Sequence[tuple[str, Text]], label: str) -> Iterator[tuple[str, Text]]:
    """The rows that a new one may follow, the best first."""
    key = squeeze(label)
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else ()
    preceding = [row for row in rows if squeeze(row[0]) in before]
    preceding.sort(key=lambda row: _ORDER.index(squeeze(row[0])))
    yield from reversed(preceding)
    yield from (row for row in reversed(rows) if row not in preceding)


def _beside(page: Page, sibling: str, value: Text, label: str, text: str) -> Splice | None:
    """A new row below ``sibling`` that is written as that one is."""
    data, row = page.data, page.enclosing(value, ROWS, sibling)
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
    item = page.enclosing(value, ["Item"])
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
        page.enclosing(other, ["Paragraph"])
        for other in page.document.metadata.values()
        if other is not value
    ]
    own = page.enclosing(value, ["Paragraph"])
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
