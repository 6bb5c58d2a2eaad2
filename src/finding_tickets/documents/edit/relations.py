"""Naming another ticket among the related findings, in the form that the document names them in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.edit.headings import add_section
from finding_tickets.documents.edit.lines import added_after, line_at, line_end
from finding_tickets.documents.edit.page import Page, Splices
from finding_tickets.documents.edit.values import code, in_cell, markup_of
from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.relations import RELATIONSHIPS
from finding_tickets.documents.roles import Role
from finding_tickets.documents.splice import Splice
from finding_tickets.documents.tables import Row, Table, table_of
from finding_tickets.model.ticket import Relation
from finding_tickets.model.vocabulary import Relationship, word_for

SECTION = "Related Findings"
_BEFORE = (Role.CROSS_REVIEW, Role.RESOLUTION, Role.REMEDIATION, Role.APPENDIX)
_HEADER = ("| Ticket ID | Relationship | Notes |", "|-----------|--------------|-------|")
_ID_COLUMNS = ("ticket", "id", "finding")
_KIND_COLUMNS = ("relation", "type", "link")
_NOTE_COLUMNS = ("note", "desc", "reason", "why")
_KIND = re.compile(rb"(?P<closing>[*`_\]]*)[ \t]*(?:\((?P<kind>[^()\r\n|]*)\))?")
_MARKER = re.compile(rb"(?P<number>\d{0,9})(?P<mark>[-*+.)])")
_OPENING = re.compile(rb"(?:\*\*)?`?")
_NOTHING = re.compile(r"(none|n/?a|-+|\u2014)\W*|\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """A ticket to be named, what it is to this one, and a remark."""

    id: str
    kind: Relationship
    note: str = ""

    def text(self, markup: str = "") -> str:
        """As an item of a list: ``B7-PT-03 (blocks): why``."""
        kind = "" if self.kind is Relationship.RELATED else f" ({self.kind})"
        note = f": {self.note}" if self.note else ""
        return f"{markup}{self.id}{markup[::-1]}{kind}{note}"

    def row(self) -> str:
        """As a row of the table that a new section has."""
        return f"| {code(self.id)} | {code(self.kind)} | {in_cell(self.note)} |"


def relate(page: Page, named: tuple[Relation, ...], link: Link) -> Iterator[Splices]:
    """Ways to name a ticket, of which ``named`` are those that the document names already."""
    for relation in named:
        if relation.id == link.id:
            yield from _changed(page, relation, link.kind)
    related = [part for part in page.parts if part.role is Role.RELATED]
    for part in related:
        yield from _in_section(page, part, link)
    if not related:
        yield from add_section(page, SECTION, [*_HEADER, link.row()], _BEFORE)


def _changed(page: Page, relation: Relation, kind: Relationship) -> Iterator[Splices]:
    """Ways to give the line that names a ticket another relationship."""
    start, end = relation.span.start, relation.span.end
    blocks = [block for block in page.blocks if block.kind == "Table" and block.start <= start < block.end]
    for table in (table_of(page.source, block) for block in blocks):
        for row in (row for row in table.body if row.block.start <= start < row.block.end):
            yield from _kind_of_row(table, row, kind)
    at = page.data.upper().find(relation.id.encode(), start, end)
    if blocks or at < 0:
        return
    after = at + len(relation.id.encode())
    match = _KIND.match(page.data, after, end)
    if match and match["kind"] and word_for(match["kind"].decode(), RELATIONSHIPS):
        yield [Splice(*match.span("kind"), kind.encode())]
    elif match:
        yield [Splice(match.end("closing"), match.end("closing"), f" ({kind})".encode())]


def _kind_of_row(table: Table, row: Row, kind: Relationship) -> Iterator[Splices]:
    for title, cell in zip(table.titles, table.cells(row), strict=True):
        start, end = sorted((cell.span.start, cell.span.end))
        if not title.startswith(_KIND_COLUMNS):
            continue
        # Whatever else stands in the cell is not for us to remove.
        if word_for(plain(cell.raw), RELATIONSHIPS):
            yield [Splice(start, end, markup_of(cell.raw)(kind).encode())]
        elif not cell.raw:
            yield [Splice(start, start, f" {code(kind)}".encode())]


def _in_section(page: Page, part: Part, link: Link) -> Iterator[Splices]:
    """Ways to name a ticket in a section: as a row, an item, instead of ``None.``, or below everything."""
    blocks = [block for block in part.blocks if block.kind != "Rule"]
    for block in reversed(blocks):
        if block.kind == "Table":
            yield [_row(page, table_of(page.source, block), link)]
        elif block.kind == "List":
            yield from ([splice] for splice in _item(page, block, link))
    for block in blocks:
        if block.kind == "Paragraph" and _says_nothing(page.source.raw(block.start, block.end)):
            start, end = page.source.trimmed(block.start, block.end)
            rows = [text.encode() for text in (*_HEADER, link.row())]
            yield [Splice(start, end, line_end(page.data, start).join(rows))]
    last = blocks[-1] if blocks else part.heading
    if last is not None:
        yield [_below(page, last, b"- " + link.text().encode())]


def _row(page: Page, table: Table, link: Link) -> Splice:
    """A row below the last one, or instead of one that says that there is nothing."""
    data, titles, header = page.data, table.titles, table.rows[0].block
    head = data[header.start : header.end].strip()
    opening, closing = (b"| " if head.startswith(b"|") else b""), (b" |" if head.endswith(b"|") else b"")
    real = [row for row in table.body if not row.text]
    like = [cell.raw for cell in table.cells(real[-1])] if real else []
    empty = bool(like) and len(real) == 1 and all(map(_says_nothing, like))
    if empty or not like:
        like = ["`"] * len(titles)
    written = [in_cell(text) for text in _columns(titles, like, link)]
    text = opening + b" | ".join(each.encode() for each in written) + closing
    if empty:
        return Splice(*page.source.trimmed(real[0].block.start, real[0].block.end), text)
    head_line = line_at(data, header.start)
    line = line_at(data, real[-1].block.start) if real else line_at(data, head_line.after)
    indent = data[head_line.start : header.start]
    return Splice(line.after, line.after, added_after(data, line, indent + text))


def _columns(titles: list[str], like: list[str], link: Link) -> Iterator[str]:
    """The cells of a new row under ``titles``, each in the markup of the one above it."""
    numbered = list(enumerate(titles))
    ids = next((index for index, title in numbered if title.startswith(_ID_COLUMNS)), 0)
    notes = next((index for index, title in numbered if title.startswith(_NOTE_COLUMNS)), len(titles) - 1)
    for index, title in numbered:
        if index == ids:
            yield markup_of(like[index])(link.id)
        elif title.startswith(_KIND_COLUMNS):
            yield markup_of(like[index])(link.kind)
        else:
            yield link.note if index == notes else ""


def _item(page: Page, listing: Block, link: Link) -> Iterator[Splice]:
    """An item below the last one, with its marker and the markup of its ID."""
    data, last = page.data, listing.children[-1]
    line = line_at(data, last.start)
    marker = _MARKER.match(data, last.start)
    if marker is None:
        return
    number = str(int(marker["number"]) + 1) if marker["number"] else ""
    opening = _OPENING.match(data[marker.end() : line.end].lstrip())
    markup = opening[0].decode() if opening else ""
    text = f"{number}{marker['mark'].decode()} {link.text(markup)}".encode()
    loose = len(listing.children) > 1 and _is_loose(page, listing.children[-2])
    yield _below(page, last, data[line.start : last.start] + text, apart=loose)


def _is_loose(page: Page, item: Block) -> bool:
    """Whether a blank line follows an item."""
    after = line_at(page.data, page.source.trimmed(item.start, item.end)[1]).after
    return not page.data[after : line_at(page.data, after).end].strip()


def _below(page: Page, block: Block, text: bytes, *, apart: bool = True) -> Splice:
    """A line below a block, with blank lines around it where it stands apart."""
    data = page.data
    line = line_at(data, page.source.trimmed(block.start, block.end)[1])
    follows = apart and data[line.after : line_at(data, line.after).end].strip()
    lines = [*([b""] if apart else []), text, *([b""] if follows else [])]
    return Splice(line.after, line.after, added_after(data, line, *lines))


def _says_nothing(raw: str) -> bool:
    return _NOTHING.fullmatch(plain(raw)) is not None
