"""Related findings: a table, a list of IDs with notes, or text that names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.blocks import Block, walk
from finding_tickets.documents.entries import Entry, text_of
from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Relation
from finding_tickets.model.vocabulary import Relationship, Spelled, squeeze, word_for

_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|n/?a|nothing|tbd)(?![^\W_]).*|no (?:known |directly )?(?:related|other|duplicate).*)?",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"related (?:ticket|finding)s?\s*:", re.IGNORECASE)
_BEFORE_NOTE = " \t:-\u2013\u2014"
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_ASIDE = re.compile(r"\s*(?:\(.*\))?")
_TO = re.compile(r"\s*(?:-|\u2013|\u2014|\.\.\.?|to|through|thru)\s*", re.IGNORECASE)
_AND = re.compile(r"\s*(?:,|/|&|\band\b|;)\s*(?:and\s+)?", re.IGNORECASE)
_ROWS = frozenset(
    map(
        squeeze,
        [
            "Related",
            "Related to",
            "Related Tickets",
            "Related Findings",
            "Duplicate of",
            "Duplicates",
            "Blocks",
        ],
    )
) | {"blockedby", "dependson", "seealso"}
_LONGEST_RANGE = 100
_LONGEST_REASON = 200
RELATIONSHIPS = Spelled(
    {
        Relationship.RELATED.value: ("related to", "see also", "see", "relates to"),
        Relationship.DUPLICATE.value: ("duplicate of", "duplicates", "duplicated by", "same as"),
        Relationship.BLOCKS.value: ("blocking", "blocker for"),
        Relationship.BLOCKED_BY.value: ("depends on", "blocked", "requires", "dependencies", "depends"),
    }
)
"""The words that documents state a relationship in, beside the vocabulary's own."""

# The last of these before an ID says how it is related; a negation takes it back.
_IN_WORDS = re.compile(
    r"(?P<no>\b(?:not|no|non)\b[\w\s-]{0,12})?"
    r"\b(?P<kind>blocked[ -]by|depends on|duplicates?(?: of)?|block(?:s|ing)|related|see)\b",
    re.IGNORECASE,
)


def read_relations(part: Part) -> tuple[Relation, ...]:
    """The tickets that a section of related findings names."""
    return tuple(_of_blocks(part.source, part.blocks))


def read_references(part: Part) -> tuple[Relation, ...]:
    """The tickets among a list of references: the items that begin with ``Related ticket:``."""
    texts = (part.source.text(*text_of(item)) for item in part.by_kind["Item"])
    matches = ((text, _REFERENCE.match(text.raw)) for text in texts)
    return tuple(
        relation
        for text, match in matches
        if match
        for relation in _of_line(
            part.source, part.source.text(text.span.start + len(match[0].encode()), text.span.end), None
        )
    )


def stated_relations(source: Source, stated: Iterable[Entry]) -> Iterator[Relation]:
    """The tickets that rows of the metadata name, such as ``Duplicate Of`` or ``Blocked By``."""
    for entry in stated:
        if entry.key in _ROWS and entry.value.raw:
            yield from _of_line(source, entry.value, _kind(entry.label))


def _of_blocks(source: Source, blocks: Iterable[Block]) -> Iterator[Relation]:
    """Relations of tables, lists and paragraphs; a heading or a line ``Blocks:`` says of which kind."""
    kind: Relationship | None = None
    for block in blocks:
        if block.kind == "Table":
            yield from _of_table(source, block, kind)
        elif block.kind == "List":
            for item in (each for each in walk([block]) if each.kind == "Item"):
                yield from _of_line(source, source.text(*text_of(item)), kind)
        elif block.kind in ("Paragraph", "Heading"):
            text = (
                source.text(block.first, block.last) if block.level else source.text(block.start, block.end)
            )
            words = plain(text.raw)
            if block.level or words.endswith(":"):
                kind = _kind(words)
            else:
                yield from _of_line(source, text, kind)


def _of_table(source: Source, block: Block, kind: Relationship | None) -> Iterator[Relation]:
    table = table_of(source, block)
    titles = table.titles
    related = next((title for title in titles if title.startswith(("relation", "type", "link"))), None)
    noted = next(
        (title for title in titles if title.startswith(("note", "desc", "reason", "why"))), titles[-1]
    )
    for row in table.records:
        cells = [(row[title], _ids(source, plain(row[title].raw))) for title in titles]
        cell, found = next((each for each in cells if each[1]), cells[0])
        if not found and not all(_NOTHING.fullmatch(plain(each.raw)) for each in row.values()):
            _report(source, cell)
        how = _relationship(source, row[related], kind) if related and found else kind
        note = row[noted] if row[noted] is not cell else None
        for ticket in found:
            yield Relation(
                raw=cell.raw,
                span=cell.span,
                id=ticket,
                relationship=how or Relationship.RELATED,
                note=plain(note.raw) if note else "",
            )


def _of_line(source: Source, text: Text, kind: Relationship | None) -> Iterator[Relation]:
    """``B7-PT-03: note``, ``B7-PT-03 (duplicate): note``, ``B7-PT-03 to B7-PT-05``, or text with IDs."""
    words = _without_links(plain(text.raw))
    leading = _leading(source, words)
    if leading is None:
        yield from _of_prose(source, text, words, kind)
        return
    found, rest = leading
    aside = re.match(r"\s*\((?P<kind>[^)]*)\)", rest)
    stated = word_for(aside["kind"], RELATIONSHIPS) if aside else None
    if aside and stated:
        rest = rest[aside.end() :]
    how = Relationship(stated) if stated else kind or Relationship.RELATED
    for ticket in found:
        yield _relation(text, ticket, how, rest.strip(_BEFORE_NOTE))


def _of_prose(source: Source, text: Text, words: str, kind: Relationship | None) -> Iterator[Relation]:
    """Every ID that a text names, each once, related as the words before it say."""
    pattern = re.compile(rf"(?<![\w-])(?:{source.vocabulary.id_pattern})(?![\w-])")
    named: dict[str, Relationship] = {}
    at = 0
    while match := pattern.search(words, at):
        found, at = _run(source, words, match.start())
        before = words[max(0, match.start() - _LONGEST_REASON) : match.start()]
        for ticket in found:
            named.setdefault(ticket, _in_words(before) or kind or Relationship.RELATED)
    for ticket, how in named.items():
        yield _relation(text, ticket, how, words)
    if not named and not _NOTHING.fullmatch(words):
        _report(source, text)


def _in_words(before: str) -> Relationship | None:
    """How the words before an ID say that it is related, by the last sentence of them."""
    last = None
    for match in _IN_WORDS.finditer(re.split(r"[.;]\s", before)[-1]):
        last = match
    return _kind(last["kind"]) if last and not last["no"] else None


def _leading(source: Source, words: str) -> tuple[list[str], str] | None:
    """The IDs that a line begins with, and what follows them."""
    for start in (1, 0) if words.startswith(("[", "(")) else (0,):
        found, end = _run(source, words, start)
        if found:
            return found, words[end:].removeprefix("]")
    return None


def _run(source: Source, words: str, start: int) -> tuple[list[str], int]:
    """A run of IDs from ``start`` on, with ranges of them spelled out, and where it ends.

    ``B1-PT-01, B1-PT-02``, ``B1-PT-01 to B1-PT-05`` and ``B1-PT-01/02``.
    """
    first = source.vocabulary.an_id.match(words, start)
    if first is None:
        return [], start
    found, end = [first[0].upper()], first.end()
    while True:
        to, more = _TO.match(words, end), _AND.match(words, end)
        joint = more or to
        following = _next(source, words, joint.end(), found[-1]) if joint else None
        if following is None:
            return found, end
        ticket, end = following
        found += [ticket] if more else _between(found[-1], ticket)


def _next(source: Source, words: str, start: int, before: str) -> tuple[str, int] | None:
    """The ID at ``start``, perhaps only its number in the series of the ID before, and its end."""
    whole = source.vocabulary.an_id.match(words, start)
    if whole:
        return whole[0].upper(), whole.end()
    stem, _, last = before.rpartition("-")
    number = re.compile(rf"-?(\d{{{len(last)}}})(?![\w.-]*\w)").match(words, start)
    return (f"{stem}-{number[1]}", number.end()) if number else None


def _between(first: str, last: str) -> list[str]:
    """The IDs behind the first up to the last, where both are of one series."""
    (stem, _, low), (other, _, high) = first.rpartition("-"), last.rpartition("-")
    count = int(high) - int(low) if low.isdigit() and high.isdigit() and stem == other else 0
    if not 0 < count <= _LONGEST_RANGE:
        return [last]
    return [f"{stem}-{number:0{len(low)}d}" for number in range(int(low) + 1, int(high) + 1)]


def _ids(source: Source, words: str) -> list[str]:
    """The IDs that a cell consists of; a remark in brackets may follow them."""
    leading = _leading(source, _without_links(words))
    return leading[0] if leading and _ASIDE.fullmatch(leading[1]) else []


def _without_links(words: str) -> str:
    return _LINK.sub(r"\1", words) if "](" in words else words


def _relation(text: Text, ticket: str, how: Relationship, note: str) -> Relation:
    return Relation(raw=text.raw, span=text.span, id=ticket, relationship=how, note=note)


def _kind(words: str) -> Relationship | None:
    """The relationship that words such as ``Blocked by`` state or begin with."""
    squeezed = squeeze(words)
    beginnings = (word for each, word in reversed(RELATIONSHIPS.spellings) if squeezed.startswith(each))
    word = RELATIONSHIPS.by_spelling.get(squeezed) or next(beginnings, None)
    return Relationship(word) if word else None


def _relationship(source: Source, cell: Text, kind: Relationship | None) -> Relationship | None:
    words = plain(cell.raw)
    how = _kind(words) if words else kind
    if words and how is None:
        hint = f"one of {', '.join(RELATIONSHIPS)}"
        source.report("unknown-word", cell.span.start, f"the relationship is {words!r}", hint=hint)
    return how


def _report(source: Source, text: Text) -> None:
    message = f"no ticket ID in {plain(text.raw)[:60]!r}"
    source.report("related-id", text.span.start, message, hint="start with the ID: B1-PT-02: why it matters")
