"""Related findings: a table, or a list of IDs with notes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from finding_tickets.markdown.blocks import Block, walk
from finding_tickets.markdown.entries import text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.tables import records
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Relation
from finding_tickets.model.vocabulary import Relationship, word_for

_NOTHING = re.compile(r"(none|n/?a|-+|\u2014)\b.*|\W*", re.IGNORECASE)
_REFERENCE = re.compile(r"related (?:ticket|finding)s?\s*:", re.IGNORECASE)
_BEFORE_NOTE = " \t:-\u2013\u2014"
_RELATIONSHIPS = {
    Relationship.RELATED.value: ("related to", "see also"),
    Relationship.DUPLICATE.value: ("duplicate of", "duplicates"),
    Relationship.BLOCKS.value: ("blocking",),
    Relationship.BLOCKED_BY.value: ("depends on",),
}


def read_relations(part: Part) -> tuple[Relation, ...]:
    """The tickets that a section of related findings names."""
    return tuple(relation for block in part.blocks for relation in _of_block(part, block))


def read_references(part: Part) -> tuple[Relation, ...]:
    """The tickets among a list of references: the items that begin with ``Related ticket:``."""
    items = (block for block in walk(part.blocks) if block.kind == "Item")
    texts = (part.source.text(*text_of(item)) for item in items)
    matches = ((text, _REFERENCE.match(text.raw)) for text in texts)
    return tuple(
        relation
        for text, match in matches
        if match
        for relation in _of_line(
            part, part.source.text(text.span.start + len(match[0].encode()), text.span.end)
        )
    )


def _of_block(part: Part, block: Block) -> Iterator[Relation]:
    if block.kind == "Table":
        yield from _of_table(part, block)
    elif block.kind == "List":
        for item in (each for each in walk([block]) if each.kind == "Item"):
            yield from _of_line(part, part.source.text(*text_of(item)))
    elif block.kind == "Paragraph":
        yield from _of_line(part, part.source.text(block.start, block.end))


def _of_table(part: Part, table: Block) -> Iterator[Relation]:
    for row in records(part.source, table):
        cells = list(row.values())
        text = plain(cells[0].raw)
        if not re.fullmatch(part.source.vocabulary.id_pattern, text, re.IGNORECASE):
            _report(part, cells[0])
            continue
        kind = next((cell for title, cell in row.items() if title.startswith("relation")), None)
        note = next((cell for title, cell in row.items() if title.startswith("note")), cells[-1])
        yield Relation(
            raw=cells[0].raw,
            span=cells[0].span,
            id=text.upper(),
            relationship=_relationship(part, kind),
            note=plain(note.raw) if note is not cells[0] else "",
        )


def _of_line(part: Part, text: Text) -> Iterator[Relation]:
    """``B7-PT-03: note``, ``B7-PT-03 (duplicate): note`` or ``B7-PT-03``."""
    words = plain(text.raw)
    if _NOTHING.fullmatch(words):
        return
    match = re.match(
        rf"(?P<id>{part.source.vocabulary.id_pattern})\s*(?:\((?P<kind>[^)]*)\))?", words, re.IGNORECASE
    )
    if match is None:
        _report(part, text)
        return
    kind = word_for(match["kind"] or "", _RELATIONSHIPS)
    rest = words[match.end() :] if kind else words[match.end("id") :]
    yield Relation(
        raw=text.raw,
        span=text.span,
        id=match["id"].upper(),
        relationship=Relationship(kind or Relationship.RELATED),
        note=rest.strip(_BEFORE_NOTE),
    )


def _relationship(part: Part, cell: Text | None) -> Relationship:
    words = plain(cell.raw) if cell else ""
    word = word_for(words, _RELATIONSHIPS)
    if cell is not None and words and word is None:
        hint = f"one of {', '.join(_RELATIONSHIPS)}"
        part.source.report("unknown-word", cell.span.start, f"the relationship is {words!r}", hint=hint)
    return Relationship(word or Relationship.RELATED)


def _report(part: Part, text: Text) -> None:
    message = f"no ticket ID in {plain(text.raw)[:60]!r}"
    part.source.report(
        "related-id", text.span.start, message, hint="start with the ID: B1-PT-02: why it matters"
    )
