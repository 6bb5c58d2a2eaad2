"""What the blocks of a cross-review say, piece by piece: a reviewer, a verdict, an evaluation, a date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.entries import Entry, entries, labelled, text_of
from finding_tickets.documents.review_tables import (
    DATE,
    EVALUATION,
    REVIEWER,
    Row,
    review_rows,
    stray_rows,
    verdict_title,
)
from finding_tickets.documents.reviewers import opinion_span, reviewer_word
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text


class What(Enum):
    """What a piece is; BEGIN and END set apart the pieces of a review of its own."""

    BEGIN = auto()
    END = auto()
    REVIEWER = auto()
    VERDICT = auto()
    EVALUATION = auto()
    DATE = auto()
    CELL = auto()
    PROSE = auto()


@dataclass(frozen=True)
class Piece:
    """A piece of a review; ``about`` is the register's word for the reviewer whom a label names."""

    what: What
    text: Text | None = None
    about: str | None = None


_BARE = re.compile(r"verdict|reviewer|agent|evaluation|date|rationale")
_VERDICT_KEYS = frozenset(["verdict", "opinion", "vote", "finalverdict"])
_VERDICT_OR_TEXT = frozenset(["assessment", "recommendation", "decision", "status", "position"])
_REVIEWER_KEYS = frozenset(["reviewer", "agent", "specialist", "reviewedby", "expert", "reviewers"])
_DATE_KEYS = frozenset(["date", "reviewdate", "reviewed", "reviewedon"])
_EVALUATION_KEYS = frozenset(EVALUATION)
_SEPARATED = re.compile(r"(?:[:(|*`\]]|\s[-\u2013\u2014])[\s*`_(]*\Z|\A[\W_]*\Z")
_BEHIND = re.compile(r"[\s*`_]*\((?P<aside>[^()]*)\)")
_MARKS = " \t*`_:.,;|()[]-\u2013\u2014"
_BEFORE_REASON = re.compile(r"[`*_]*\s*[)\]]?[`*_]*\s*[:.,;|\u2013\u2014-]*[*_]*\s*")
_LONGEST_NAME = 6
_LONGEST_ALONE = 3


def pieces(source: Source, blocks: Sequence[Block]) -> Iterator[Piece]:
    """The pieces of ``blocks``, none of which is a heading, in the order of the file."""
    titles: list[str] = []
    for block in blocks:
        rows = review_rows(source, block) if block.kind == "Table" else []
        titles = table_of(source, block).titles if rows else titles
        if titles and block.kind == "Paragraph":
            rows = stray_rows(source, block, titles)
        if rows:
            yield from _of_rows(source, rows)
        elif block.kind == "Table":
            yield from _of_fields(source, block)
        elif block.kind == "Paragraph":
            yield from _of_text(source, block.start, block.end)
        elif block.kind == "List":
            yield from _of_list(source, block)
        elif block.kind == "BlockQuote":
            yield from pieces(source, block.children)
        elif block.kind != "Rule":
            yield Piece(What.PROSE, source.text(block.start, block.end))


def sentence(source: Source, text: Text, *, known: bool = True) -> list[Piece]:
    """``DRL: ENDORSE - why``, ``**DRL (ENDORSE):** why`` or ``ENDORSE (DRL): why``; empty for other text.

    With ``known`` the reviewer must be one of the register's.
    """
    line = text.raw.partition("\n")[0]
    verdict = opinion_span(line, 0, len(line), source.vocabulary.opinions)
    behind = _BEHIND.match(line, verdict[1]) if verdict else None
    if verdict is None:
        return []
    longest = _LONGEST_NAME
    if line[: verdict[0]].strip(_MARKS):
        who, stated = (0, verdict[0]), (verdict[0], behind.end() if behind else verdict[1])
    elif behind:
        who, stated = behind.span("aside"), verdict
    else:
        # The reviewer alone on the rest of the line: ``ENDORSE - DRL``.
        who, stated = (verdict[1], len(line)), verdict
        known, longest = True, _LONGEST_ALONE
    name = _name(source, text, *who)
    separated = who[0] or _SEPARATED.search(line[: verdict[0]])
    named = reviewer_word(name.raw, source.vocabulary) is not None or not known
    if not (name.raw and separated and named and len(name.raw.split()) <= longest):
        return []
    end = max(stated[1], behind.end() if behind else 0, who[1])
    why = _rest(source, text, end)
    found = [
        Piece(What.BEGIN),
        Piece(What.REVIEWER, name),
        Piece(What.VERDICT, _within(source, text, *stated)),
    ]
    return [*found, Piece(What.EVALUATION, why)] if why.raw else found


def leading_verdict(source: Source, text: Text) -> list[Piece]:
    """A text that begins with its verdict, in bold or capitals: ``**NEUTRAL** - why``."""
    line = text.raw.partition("\n")[0]
    verdict = opinion_span(line, 0, len(line), source.vocabulary.opinions)
    if verdict is None or line[: verdict[0]].strip("*`_ "):
        return []
    if not (line[slice(*verdict)].isupper() or line.startswith(("*", "`"))):
        return []
    behind = _BEHIND.match(line, verdict[1])
    end = behind.end() if behind else verdict[1]
    why = _rest(source, text, end)
    stated = Piece(What.VERDICT, _within(source, text, verdict[0], end))
    return [stated, Piece(What.PROSE, why)] if why.raw else [stated]


def _within(source: Source, text: Text, first: int, last: int) -> Text:
    """A piece of a text, by offsets of characters."""
    start = text.span.start + len(text.raw[:first].encode())
    return source.text(start, start + len(text.raw[first:last].encode()))


def _name(source: Source, text: Text, first: int, last: int) -> Text:
    """A name without the marks around it."""
    piece = text.raw[first:last]
    first += len(piece) - len(piece.lstrip(_MARKS))
    return _within(source, text, first, first + len(piece.strip(_MARKS)))


def _rest(source: Source, text: Text, first: int) -> Text:
    """What follows a verdict, without what separates the two."""
    separator = _BEFORE_REASON.match(text.raw, first)
    return _within(source, text, separator.end() if separator else first, len(text.raw))


def _of_rows(source: Source, rows: Sequence[Row]) -> Iterator[Piece]:
    for row in rows:
        verdict = verdict_title(source, list(row), rows) or "verdict"
        reviewer = next((title for title in REVIEWER if title in row and row[title].raw), None)
        date = next((title for title in DATE if title in row), None)
        beside = [title for title in row if title not in (verdict, reviewer, date, "#", "domain")]
        evaluation = next((title for title in EVALUATION if title in row), beside[0] if beside else None)
        if not row[verdict].raw and not (evaluation and row[evaluation].raw):
            continue
        yield Piece(What.BEGIN)
        if reviewer:
            yield Piece(What.REVIEWER, row[reviewer])
        yield Piece(What.VERDICT, row[verdict])
        if evaluation:
            yield Piece(What.CELL, row[evaluation])
        if date:
            yield Piece(What.DATE, row[date])
        yield from (Piece(What.CELL, row[title]) for title in beside if title != evaluation)
    if len(rows) > 1:
        yield Piece(What.END)


def _of_fields(source: Source, table: Block) -> Iterator[Piece]:
    found = list(entries(source, [table]))
    facts = [piece for entry in found for piece in _of_entry(source, entry, cell=True)]
    if not any(piece.what in (What.VERDICT, What.REVIEWER) for piece in facts):
        facts = [Piece(What.CELL, source.text(table.start, table.end))]
    yield from facts


def _of_text(source: Source, start: int, end: int) -> Iterator[Piece]:
    """A paragraph: text, and labelled values within it."""
    found = list(labelled(source, start, end, _BARE))
    before = source.text(start, found[0].start if found else end)
    if before.raw:
        yield from sentence(source, before) or [Piece(What.PROSE, before)]
    for entry in found:
        yield from _of_entry(source, entry, cell=False)


def _of_list(source: Source, block: Block) -> Iterator[Piece]:
    """Items that are labelled values or reviews; a list without any is text."""
    found = [list(_of_item(source, item)) for item in block.children]
    if all(each.what is What.PROSE for item in found for each in item):
        found = [[Piece(What.PROSE, source.text(block.start, block.end))]]
    for item in found:
        yield from item


def _of_item(source: Source, item: Block) -> Iterator[Piece]:
    start, end = text_of(item)
    if not list(labelled(source, start, end, _BARE)):
        told = sentence(source, source.text(start, end), known=False)
        if told:
            yield from told
            return
    yield from _of_text(source, start, end)
    nested = [child for child in item.children if child.start >= end]
    if nested:
        yield Piece(What.PROSE, source.text(nested[0].start, nested[-1].end))


def _of_entry(source: Source, entry: Entry, *, cell: bool) -> Iterator[Piece]:
    """What a labelled value says; in a table it ends with its cell."""
    key, about = entry.key, reviewer_word(entry.label, source.vocabulary)
    if key in _REVIEWER_KEYS:
        yield Piece(What.REVIEWER, entry.value)
    elif key in _DATE_KEYS:
        yield Piece(What.DATE, entry.value)
    elif key in _VERDICT_KEYS or (key in _VERDICT_OR_TEXT and leading_verdict(source, entry.value)):
        yield from _verdict(source, entry)
    elif about and "verdict" in key:
        yield from (Piece(What.BEGIN), Piece(What.REVIEWER, _label(source, entry)))
        yield from _verdict(source, entry)
    elif about and not key.endswith("evaluation") and (told := sentence(source, _whole(source, entry))):
        yield from told
    elif about or key.endswith("evaluation") or key in _EVALUATION_KEYS:
        if entry.value.raw:
            yield Piece(What.CELL if cell and not about else What.EVALUATION, entry.value, about)
    else:
        yield Piece(What.CELL if cell else What.PROSE, entry.value if cell else _whole(source, entry))


def _whole(source: Source, entry: Entry) -> Text:
    """A labelled value with its label."""
    return source.text(entry.start, entry.value.span.end)


def _verdict(source: Source, entry: Entry) -> Iterator[Piece]:
    """A labelled value reaches to the next label; a verdict is its first line."""
    start, end = entry.value.span.start, entry.value.span.end
    first = start + len(entry.value.raw.partition("\n")[0].encode())
    yield Piece(What.VERDICT, source.text(start, first))
    rest = source.text(first, end)
    if rest.raw:
        yield Piece(What.PROSE, rest)


def _label(source: Source, entry: Entry) -> Text:
    text = source.text(entry.start, entry.value.span.start)
    return _name(source, text, 0, len(text.raw))
