"""Related findings: a table, a list of IDs with notes, or text that names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.metadata import LabelledValue, item_text
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Excerpt, MarkdownTable, Values, table_of, walk
from finding_tickets.model.vocabulary import Relationship, Spelled, Vocabulary, squeeze, word_for

_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|n/?a|nothing|tbd)(?![^\W_]).*|no (?:known |directly )?(?:related|other|duplicate).*)?",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"related (?:ticket|finding)s?\s*:", re.IGNORECASE)
_BEFORE_NOTE = " \t:-\u2013\u2014"
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_ASIDE = re.compile(r"\s*(?:\(.*\))?")
_KIND_BEHIND = re.compile(r"\s*\((?P<kind>[^)]*)\)")
_TO = re.compile(r"\s*(?:-|\u2013|\u2014|\.\.\.?|to|through|thru)\s*", re.IGNORECASE)
_AND = re.compile(r"\s*(?:,|/|&|\band\b|;)\s*(?:and\s+)?", re.IGNORECASE)
_ROWS = re.compile(
    r"related(?:to|tickets|findings)?|duplicateof|duplicates|blocks|blockedby|dependson|seealso"
)
KIND_COLUMNS = re.compile(r"(?:relation|type|link).*", re.DOTALL)
NOTE_COLUMNS = re.compile(r"(?:note|desc|reason|why).*", re.DOTALL)
_LONGEST_RANGE = 100
# So many characters before an ID may say how it is related; a longer text would be searched for each ID.
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


def read_relations(part: DocumentPart) -> Iterator[Values]:
    """The tickets that a section of related findings names, in tables, lists and paragraphs."""
    source = part.source
    # A heading or a line ``Blocks:`` says of which kind those below it are.
    kind: Relationship | None = None
    for block in part.blocks:
        if block.kind == "Table":
            yield from _of_table(table_of(source, block), kind)
        elif block.kind == "List":
            for item in walk([block]):
                if item.kind == "Item":
                    yield from _of_line(item_text(source, item), kind)
        elif block.kind in ("Paragraph", "Heading"):
            text = source.text(block.first, block.last) if block.level else source.whole(block)
            if block.level or text.plain.endswith(":"):
                kind = _kind(text.plain)
            else:
                yield from _of_line(text, kind)


def read_references(part: DocumentPart) -> Iterator[Values]:
    """The tickets among a list of references: the items that begin with ``Related ticket:``."""
    for item in part.by_kind["Item"]:
        text = item_text(part.source, item)
        if match := _REFERENCE.match(text.raw):
            yield from _of_line(text.piece(match.end()), None)


def stated_relations(stated: Iterable[LabelledValue]) -> Iterator[Values]:
    """The tickets that rows of the metadata name, such as ``Duplicate Of`` or ``Blocked By``."""
    for entry in stated:
        if _ROWS.fullmatch(entry.key) and entry.value.raw:
            yield from _of_line(entry.value, _kind(entry.label))


def _of_table(table: MarkdownTable, kind: Relationship | None) -> Iterator[Values]:
    related = table.column(KIND_COLUMNS)
    noted = table.column(NOTE_COLUMNS) or table.titles[-1]
    for row in table.records:
        cells = list(row.values())
        # A cell of IDs is nothing but these and a remark in brackets.
        leading = ((each, _leading(table.source.vocabulary, _LINK.sub(r"\1", each.plain))) for each in cells)
        named = ((each, ids[0]) for each, ids in leading if ids and _ASIDE.fullmatch(ids[1]))
        cell, found = next(named, (cells[0], []))
        if not found and not all(_NOTHING.fullmatch(each.plain) for each in cells):
            _report_no_id(cell)
        how = kind
        if related and found and row[related].plain:
            how = _kind(row[related].plain)
            if how is None:
                row[related].report_unknown("the relationship", RELATIONSHIPS)
        note = "" if row[noted] is cell else row[noted].plain
        for ticket in found:
            yield cell.record(id=ticket, relationship=how or Relationship.RELATED, note=note)


def _of_line(text: Excerpt, kind: Relationship | None) -> Iterator[Values]:
    """``B7-PT-03: note``, ``B7-PT-03 (duplicate): note``, ``B7-PT-03 to B7-PT-05``, or text with IDs."""
    vocabulary = text.source.vocabulary
    words = _LINK.sub(r"\1", text.plain) if "](" in text.plain else text.plain
    if leading := _leading(vocabulary, words):
        found, rest = leading
        aside = _KIND_BEHIND.match(rest)
        stated = word_for(aside["kind"], RELATIONSHIPS) if aside else None
        note = (rest[aside.end() :] if aside and stated else rest).strip(_BEFORE_NOTE)
        how = Relationship(stated) if stated else kind or Relationship.RELATED
        for ticket in found:
            yield text.record(id=ticket, relationship=how, note=note)
        return
    # Every ID that a text names counts once, related as the last sentence before it says.
    pattern = re.compile(rf"(?<![\w-])(?:{vocabulary.id_pattern})(?![\w-])")
    named, at = dict[str, Relationship](), 0
    while match := pattern.search(words, at):
        found, at = _run(vocabulary, words, match.start())
        before = re.split(r"[.;]\s", words[max(0, match.start() - _LONGEST_REASON) : match.start()])[-1]
        last = next(iter([*_IN_WORDS.finditer(before)][::-1]), None)
        stated_how = _kind(last["kind"]) if last and not last["no"] else None
        for ticket in found:
            named.setdefault(ticket, stated_how or kind or Relationship.RELATED)
    for ticket, how in named.items():
        yield text.record(id=ticket, relationship=how, note=words)
    if not named and not _NOTHING.fullmatch(words):
        _report_no_id(text)


def _leading(vocabulary: Vocabulary, words: str) -> tuple[list[str], str] | None:
    """The IDs that a line begins with, and what follows them."""
    # IDs may stand in brackets: ``[B7-PT-03]``.
    for start in (1, 0) if words.startswith(("[", "(")) else (0,):
        found, end = _run(vocabulary, words, start)
        if found:
            return found, words[end:].removeprefix("]")
    return None


def _run(vocabulary: Vocabulary, words: str, start: int) -> tuple[list[str], int]:
    """A run of IDs from ``start`` on, with ranges of them spelled out, and where it ends.

    ``B1-PT-01, B1-PT-02``, ``B1-PT-01 to B1-PT-05`` and ``B1-PT-01/02``.
    """
    first = vocabulary.an_id.match(words, start)
    found, end = ([first[0].upper()], first.end()) if first else ([], start)
    # A comma is tried first: a dash may belong to the next ID, or to the remark.
    while found and (joint := _AND.match(words, end) or _TO.match(words, end)):
        stem, _, low = found[-1].rpartition("-")
        of_series = re.compile(rf"-?(\d{{{len(low)}}})(?![\w.-]*\w)")
        if whole := vocabulary.an_id.match(words, joint.end()):
            name, end = whole[0].upper(), whole.end()
        elif number := of_series.match(words, joint.end()):
            name, end = f"{stem}-{number[1]}", number.end()
        else:
            break
        other, _, high = name.rpartition("-")
        count = int(high) - int(low) if low.isdigit() and high.isdigit() and stem == other else 0
        # A range of thousands is a slip of the pen, not a relation to thousands of tickets.
        if joint.re is _TO and 0 < count <= _LONGEST_RANGE:
            found += [f"{stem}-{each:0{len(low)}d}" for each in range(int(low) + 1, int(high) + 1)]
        else:
            found.append(name)
    return found, end


def _kind(words: str) -> Relationship | None:
    """The relationship that words such as ``Blocked by`` state or begin with."""
    squeezed = squeeze(words)
    beginnings = (word for each, word in reversed(RELATIONSHIPS.spellings) if squeezed.startswith(each))
    word = RELATIONSHIPS.by_spelling.get(squeezed) or next(beginnings, None)
    return Relationship(word) if word else None


def _report_no_id(text: Excerpt) -> None:
    message = f"no ticket ID in {text.plain[:60]!r}"
    text.report("related-id", message, "start with the ID: B1-PT-02: why it matters")
