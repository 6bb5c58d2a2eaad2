"""Labelled values, however they are written: table rows, ``**Label:** value`` lines, list items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.front_matter import pairs
from finding_tickets.documents.inline import plain
from finding_tickets.documents.lazy import lazy
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import squeeze

# A label stands at the beginning of a line, or behind a bar in a line of several; bold marks may close
# before the colon, behind it, or behind the value.
_LABEL = re.compile(
    rb"(?m)(?:(?:^|(?<=\r))[ \t]*(?:>[ \t]*)*|(?:\||\xc2\xb7|\xe2\x80\xa2)[ \t]+)"
    rb"(?P<mark>\*\*|__)(?P<label>[^*\r\n]+?)"
    rb"(?::(?P=mark)|(?P=mark)[ \t]*:|:[ \t]+(?P<value>[^*\r\n]+?)(?P=mark)(?=[ \t]*(?:$|\r|\|)))"
)
_BARE = re.compile(rb"(?m)(?:^|(?<=\r))[ \t]*(?P<label>[A-Za-z][\w()/ -]{0,40}?)[ \t]*:(?=\s)(?P<value>)")
_LINE = re.compile(rb"[^\r\n]+")
_BARS = (b"|", b"\xc2\xb7", b"\xe2\x80\xa2")
_SEPARATOR = re.compile(rb"[ \t]+(?:\||\xc2\xb7|\xe2\x80\xa2)\s*\Z")
_FIELD_AND_VALUE = 2
_COLUMN_TITLES = frozenset(["field", "key", "property", "attribute", "item", "name", "metadata"])


@dataclass(frozen=True)
class Entry:
    """A label, without markup, and the value beside it; ``start`` is where the label does."""

    label: str
    value: Text
    start: int

    @lazy
    def key(self) -> str:
        """The label as it is compared: ``File(s)`` is ``files``."""
        return squeeze(self.label)

    @lazy
    def plain(self) -> str:
        """The value without markup."""
        return plain(self.value.raw)

    @property
    def line(self) -> int:
        """The line the value starts on."""
        return self.value.span.line


def entries(source: Source, blocks: Iterable[Block], bare: re.Pattern[str] | None = None) -> Iterator[Entry]:
    """Every labelled value among ``blocks``, in the order of the file.

    Labels whose key matches ``bare`` need not be bold.
    """
    for block in blocks:
        if block.kind == "Table":
            yield from _of_table(source, block)
        elif block.kind == "Paragraph":
            yield from labelled(source, block.start, block.end, bare)
        elif block.kind == "List" and (bare or _is_marked(source.data, block.start, block.end)):
            for item in block.children:
                yield from labelled(source, *text_of(item), bare)
        elif block.kind == "BlockQuote":
            yield from entries(source, block.children, bare)
        elif block.kind == "FrontMatter":
            for key, at, start, end in pairs(source.data, block.start, block.end):
                yield Entry(key, source.text(start, end), at)


def labelled(source: Source, start: int, end: int, bare: re.Pattern[str] | None = None) -> Iterator[Entry]:
    """The ``**Label:** value`` pieces of ``[start, end)``; a value reaches to the next label."""
    marked = _is_marked(source.data, start, end)
    if not (bare or marked):
        return
    data = source.data[start:end]
    matches = _found(_LABEL, data) if marked else []
    if bare:
        named = (match for match in _found(_BARE, data) if bare.fullmatch(squeeze(match["label"].decode())))
        matches = sorted([*matches, *named], key=lambda match: match.start())
    ends = [*(match.start() for match in matches), len(data)][1:]
    for match, until in zip(matches, ends, strict=True):
        first = match.start("value") if match["value"] else match.end()
        last = match.end("value") if match["value"] else until
        value = source.text(start + first, start + _before_bar(data, first, last))
        yield Entry(plain(match["label"].decode()), value, start + match.start())


def _before_bar(data: bytes, first: int, last: int) -> int:
    """Where a value ends that reaches to ``last``: before the bar that sets apart the next label, if any."""
    barred = data[first:last].rstrip().endswith(_BARS)
    separator = _SEPARATOR.search(data, first, last) if barred else None
    return separator.start() if separator else last


def _found(label: re.Pattern[bytes], data: bytes) -> list[re.Match[bytes]]:
    """Where a pattern of labels matches; to try it at every byte would take a tenth of reading a ticket."""
    if any(bar in data for bar in _BARS):
        return list(label.finditer(data))
    lines = (label.match(data, line.start()) for line in _LINE.finditer(data))
    return [match for match in lines if match]


def text_of(item: Block) -> tuple[int, int]:
    """The text of a list item, without the blocks nested in it."""
    if item.first == item.last:
        for child in item.children:
            if child.kind == "Paragraph":
                return child.first, child.last
    return item.first, item.last


def _is_marked(data: bytes, start: int, end: int) -> bool:
    """Whether there are bold marks at all, as there are beside most labels."""
    return data.find(b"**", start, end) >= 0 or data.find(b"__", start, end) >= 0


def _of_table(source: Source, block: Block) -> Iterator[Entry]:
    table = table_of(source, block)
    titles = table.titles
    titled = titles[0] in _COLUMN_TITLES
    valued = len(titles) == _FIELD_AND_VALUE or (titled and titles[1:2] == ["value"])
    for row in table.body if titled else table.rows:
        if row.text:
            yield from labelled(source, row.block.start, row.block.end)
        elif valued:
            label, value, *_ = table.spans(row)
            yield Entry(plain(source.raw(*label)).rstrip(" :"), source.text(*value), row.block.start)
