"""Labelled values, however they are written: table rows, ``**Label:** value`` lines, list items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.source import Source
from finding_tickets.markdown.tables import body_rows, cells, columns, is_text
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import squeeze

_LABEL = re.compile(rb"(?m)^[ \t]*\*\*([^*\r\n]+?)(?::\*\*|\*\*[ \t]*:)")
_COLUMNS = 2
_COLUMN_TITLES = frozenset(["field", "key", "property", "attribute", "item", "name"])


@dataclass(frozen=True)
class Entry:
    """A label, without markup, and the value beside it."""

    label: str
    value: Text

    @property
    def key(self) -> str:
        """The label as it is compared: ``File(s)`` is ``files``."""
        return squeeze(self.label)

    @property
    def plain(self) -> str:
        """The value without markup."""
        return plain(self.value.raw)

    @property
    def line(self) -> int:
        """The line the value starts on."""
        return self.value.span.line


def entries(source: Source, blocks: Iterable[Block]) -> Iterator[Entry]:
    """Every labelled value among ``blocks``, in the order of the file."""
    for block in blocks:
        if block.kind == "Table":
            yield from _of_table(source, block)
        elif block.kind == "Paragraph":
            yield from labelled(source, block.start, block.end)
        elif block.kind == "List":
            for item in block.children:
                yield from labelled(source, *text_of(item))


def labelled(source: Source, start: int, end: int) -> Iterator[Entry]:
    """The ``**Label:** value`` pieces of ``[start, end)``; a value reaches to the next label."""
    matches = list(_LABEL.finditer(source.data[start:end]))
    ends = [*(start + match.start() for match in matches), end][1:]
    for match, until in zip(matches, ends, strict=True):
        yield Entry(plain(match[1].decode()), source.text(start + match.end(), until))


def text_of(item: Block) -> tuple[int, int]:
    """The text of a list item, without the blocks nested in it."""
    paragraphs = [child for child in item.children if child.kind == "Paragraph"]
    block = paragraphs[0] if item.first == item.last and paragraphs else item
    return block.first, block.last


def _of_table(source: Source, table: Block) -> Iterator[Entry]:
    for row in table.children if _starts_with_data(source, table) else body_rows(table):
        texts = cells(source, row)
        if is_text(source, table, row):
            yield from labelled(source, row.start, row.end)
        elif len(texts) == _COLUMNS:
            yield Entry(plain(texts[0].raw), texts[1])


def _starts_with_data(source: Source, table: Block) -> bool:
    """Whether the header of a two-column table is itself a label with its value."""
    return columns(source, table)[0] not in _COLUMN_TITLES
