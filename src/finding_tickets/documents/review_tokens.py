"""What the blocks of a cross-review say, token by token: a reviewer, a verdict, an evaluation, a date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from finding_tickets.documents.blocks import Block, table_of
from finding_tickets.documents.fields import LabelledValue, labelled_values, labels_in, text_of
from finding_tickets.documents.section_kinds import CROSS_REVIEW_TITLE
from finding_tickets.documents.source import Excerpt, Source
from finding_tickets.model.vocabulary import Opinion, Vocabulary, Words, spelled, squeeze, word_for

_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_BEFORE_NAME = re.compile(r"[\W\d_]*(?:(?:reviews? )?(?:by|from)\s+)?", re.IGNORECASE)
_BEHIND_NAME = re.compile(r"[\W_]*(?:\d{4}-\d\d-\d\d)?[\W_]*\Z")
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t)?")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_NEGATIONS = frozenset(["not", "no", "cannot", "don't", "can't", "without", "neither", "non"])
_LEAST_WITHIN_A_WORD = 3

_VERDICT = ("verdict", "opinion", "vote", "position", "decision", "assessment", "recommendation", "review")
_REVIEWER = ("agent", "reviewer", "specialist", "expert", "by", "domain")
_EVALUATION = (
    "evaluation",
    "comment",
    "comments",
    "notes",
    "note",
    "rationale",
    "reasoning",
    "justification",
)
_DATE = ("date", "reviewed")
_BESIDE = ("#", "confidence", "severity", "priority", "")
_KNOWN = frozenset([*_VERDICT, *_REVIEWER, *_EVALUATION, *_DATE, *_BESIDE])
_LABEL_AND_VALUE = 2
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")

_BARE = re.compile(r"verdict|reviewer|agent|evaluation|date|rationale")
_VERDICT_KEYS = frozenset(["verdict", "opinion", "vote", "finalverdict"])
_VERDICT_OR_TEXT = frozenset(["assessment", "recommendation", "decision", "status", "position"])
_REVIEWER_KEYS = frozenset(["reviewer", "agent", "specialist", "reviewedby", "expert", "reviewers"])
_DATE_KEYS = frozenset(["date", "reviewdate", "reviewed", "reviewedon"])
_SEPARATED = re.compile(r"(?:[:(|*`\]]|\s[-\u2013\u2014])[\s*`_(]*\Z|\A[\W_]*\Z")
_BEHIND_VERDICT = re.compile(r"[\s*`_]*\((?P<aside>[^()]*)\)")
_MARKS = " \t*`_:.,;|()[]-\u2013\u2014"
_BEFORE_REASON = re.compile(r"[`*_]*\s*[)\]]?[`*_]*\s*[:.,;|\u2013\u2014-]*[*_]*\s*")
_LONGEST_NAME = 6
_LONGEST_ALONE = 3


class TokenKind(Enum):
    """What a token is; BEGIN and END set apart the tokens of a review of its own."""

    BEGIN = auto()
    END = auto()
    REVIEWER = auto()
    VERDICT = auto()
    EVALUATION = auto()
    DATE = auto()
    CELL = auto()
    PROSE = auto()


class ReviewToken(NamedTuple):
    """A piece of a review; ``about`` is the register's word for the reviewer whom a label names."""

    kind: TokenKind
    text: Excerpt | None = None
    about: str | None = None


ReviewRow = dict[str, Excerpt]


def reviewer_word(name: str, vocabulary: Vocabulary) -> str | None:
    """The word for a reviewer: ``DRL Specialist`` is ``drl``; None for one whom the vocabulary does not know.

    Of several that are named, the first. A spelling of two letters must be a word of its own.
    """
    whole = squeeze(name)
    within = [each for each in spelled(vocabulary.known_agents).spellings if each[0] in whole]
    tokens = [squeeze(token) for token in _BETWEEN_WORDS.split(name)] if within else []
    found = []
    for spelling, word in within:
        if spelling in tokens:
            found.append((len("".join(tokens[: tokens.index(spelling)])), word))
        elif len(spelling) >= _LEAST_WITHIN_A_WORD:
            found.append((whole.find(spelling), word))
    return min(found)[1] if found else None


def reviewer_in_heading(headline: Excerpt | None) -> Excerpt | None:
    """The reviewer that a heading names: ``Cross-Review (DRL)``, ``DRL Cross-Review``, ``1. DRL``.

    A verdict and a date beside the name are left out.
    """
    raw = headline.raw if headline else ""
    title = CROSS_REVIEW_TITLE.search(raw)
    start, end = 0, len(raw)
    if title:
        behind = _BEHIND_NAME.sub("", raw[title.end() :]).strip()
        start, end = (title.end(), end) if behind else (0, title.start())
    brackets = _IN_BRACKETS.search(raw, start, end) if title else None
    if brackets:
        start, end = brackets.span(1)
    verdict = opinion_span(raw, headline.source.vocabulary.opinions, start, end) if headline else None
    end = verdict[0] if verdict else end
    before = _BEFORE_NAME.match(raw[start:end])
    start = min(start + before.end(), end) if before else start
    name = headline.piece(start, start + len(_BEHIND_NAME.sub("", raw[start:end]))) if headline else None
    return name if name and name.raw else None


def opinion_of(verdict: str, opinions: Words) -> Opinion | None:
    """The opinion that a verdict states: the first of its words that is one."""
    found = opinion_span(verdict, opinions)
    word = word_for(verdict[slice(*found)], opinions) if found else None
    return Opinion(word) if word else None


def opinion_span(
    text: str, opinions: Words, start: int = 0, end: int | None = None
) -> tuple[int, int] | None:
    """Where in ``text[start:end]`` the first word stands that is an opinion and is not negated."""
    before = ""
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        if before not in _NEGATIONS and word_for(match[0], opinions):
            return match.span()
        before = match[0].lower().replace("\u2019", "'")
    return None


def review_tokens(source: Source, blocks: Sequence[Block]) -> Iterator[ReviewToken]:
    """The tokens of ``blocks``, none of which is a heading, in the order of the file."""
    titles: list[str] = []
    for block in blocks:
        rows: list[ReviewRow] = []
        if block.kind == "Table":
            rows = _review_rows(source, block)
            titles = table_of(source, block).titles if rows else titles
        elif titles and block.kind == "Paragraph":
            rows = _stray_rows(source.text(block.start, block.end), titles)
        if rows:
            yield from _of_rows(source, rows)
        elif block.kind == "Table":
            facts = [
                token
                for entry in labelled_values(source, [block])
                for token in _of_label(source, entry, cell=True)
            ]
            if any(token.kind in (TokenKind.VERDICT, TokenKind.REVIEWER) for token in facts):
                yield from facts
            else:
                yield ReviewToken(TokenKind.CELL, source.text(block.start, block.end))
        elif block.kind == "Paragraph":
            yield from _of_text(source, block.start, block.end)
        elif block.kind == "List":
            # Items are labelled values or reviews; a list without any is text.
            found = [token for item in block.children for token in _of_item(source, item)]
            if all(token.kind is TokenKind.PROSE for token in found):
                found = [ReviewToken(TokenKind.PROSE, source.text(block.start, block.end))]
            yield from found
        elif block.kind == "BlockQuote":
            yield from review_tokens(source, block.children)
        elif block.kind != "Rule":
            yield ReviewToken(TokenKind.PROSE, source.text(block.start, block.end))


def leading_verdict(text: Excerpt) -> list[ReviewToken]:
    """A text that begins with its verdict, in bold or capitals: ``**NEUTRAL** - why``."""
    line = text.raw.partition("\n")[0]
    verdict = opinion_span(line, text.source.vocabulary.opinions)
    if verdict is None or line[: verdict[0]].strip("*`_ "):
        return []
    if not (line[slice(*verdict)].isupper() or line.startswith(("*", "`"))):
        return []
    behind = _BEHIND_VERDICT.match(line, verdict[1])
    end = behind.end() if behind else verdict[1]
    why = _reason(text, end)
    stated = ReviewToken(TokenKind.VERDICT, text.piece(verdict[0], end))
    return [stated, ReviewToken(TokenKind.PROSE, why)] if why.raw else [stated]


def first_line_verdict(text: Excerpt) -> Iterator[ReviewToken]:
    """A verdict that is the first line of a text, and what follows it."""
    line, _, _ = text.raw.partition("\n")
    yield ReviewToken(TokenKind.VERDICT, text.piece(0, len(line)))
    rest = text.piece(len(line))
    if rest.raw:
        yield ReviewToken(TokenKind.PROSE, rest)


def _review_rows(source: Source, block: Block) -> list[ReviewRow]:
    """The reviews of a table as ``{column title: cell}``; none where it is not one of verdicts."""
    table = table_of(source, block)
    titles = table.titles
    # A table of two columns may be one of fields, of which a verdict is the first.
    if len(titles) == _LABEL_AND_VALUE and not _KNOWN.issuperset(titles):
        return []
    rows = [row for row in table.records if any(cell.raw for cell in row.values())]
    if _verdict_title(source, titles, rows):
        return rows
    # A column for each reviewer and rows Verdict and Evaluation.
    lines = [table.cells(row) for row in table.body]
    labels = [line[0].raw.strip("*` :").lower() for line in lines]
    if _VERDICT[0] not in labels or len(titles) <= _LABEL_AND_VALUE:
        return []
    columns = zip(*lines, strict=True)
    names = table.cells(table.rows[0])
    return [
        {"reviewer": name, **dict(zip(labels, column, strict=True))}
        for name, column in list(zip(names, columns, strict=True))[1:]
    ]


def _verdict_title(source: Source, titles: Sequence[str], rows: Sequence[ReviewRow]) -> str | None:
    """The column of the verdicts; one that is called otherwise states an opinion in every row."""
    if _VERDICT[0] in titles:
        return _VERDICT[0]
    opinions = source.vocabulary.opinions
    # "Assessment" and the like head columns of text just as well.
    for title in _VERDICT if rows else ():
        if title in titles and all(opinion_of(row[title].raw, opinions) for row in rows):
            return title
    return None


def _stray_rows(text: Excerpt, titles: Sequence[str]) -> list[ReviewRow]:
    """A paragraph that is written as rows of the table above it, which has these ``titles``."""
    rows = []
    for line in _LINE.finditer(text.raw):
        written = text.piece(*line.span())
        pieces = written.raw[1:-1].split("|", len(titles) - 1)
        if not (written.raw.startswith("|") and written.raw.endswith("|") and len(pieces) == len(titles)):
            return []
        row, at = ReviewRow(), 1
        for title, piece in zip(titles, pieces, strict=True):
            row[title] = written.piece(at, at + len(piece))
            at += len(piece) + 1
        rows.append(row)
    text.report("table-header", "a table row without a header; read with the table above")
    return rows


def _of_rows(source: Source, rows: Sequence[ReviewRow]) -> Iterator[ReviewToken]:
    for row in rows:
        verdict = _verdict_title(source, list(row), rows) or "verdict"
        reviewer = next((title for title in _REVIEWER if title in row and row[title].raw), None)
        date = next((title for title in _DATE if title in row), None)
        beside = [title for title in row if title not in (verdict, reviewer, date, "#", "domain")]
        evaluation = next((title for title in _EVALUATION if title in row), beside[0] if beside else None)
        if not row[verdict].raw and not (evaluation and row[evaluation].raw):
            continue
        yield ReviewToken(TokenKind.BEGIN)
        if reviewer:
            yield ReviewToken(TokenKind.REVIEWER, row[reviewer])
        yield ReviewToken(TokenKind.VERDICT, row[verdict])
        if evaluation:
            yield ReviewToken(TokenKind.CELL, row[evaluation])
        if date:
            yield ReviewToken(TokenKind.DATE, row[date])
        for title in beside:
            if title != evaluation:
                yield ReviewToken(TokenKind.CELL, row[title])
    if len(rows) > 1:
        yield ReviewToken(TokenKind.END)


def _of_text(source: Source, start: int, end: int) -> Iterator[ReviewToken]:
    """A paragraph: text, and labelled values within it."""
    found = list(labels_in(source, start, end, _BARE))
    before = source.text(start, found[0].start if found else end)
    if before.raw:
        yield from _sentence(before) or [ReviewToken(TokenKind.PROSE, before)]
    for entry in found:
        yield from _of_label(source, entry, cell=False)


def _of_item(source: Source, item: Block) -> Iterator[ReviewToken]:
    start, end = text_of(item)
    labelled = list(labels_in(source, start, end, _BARE))
    told = [] if labelled else _sentence(source.text(start, end), known=False)
    if told:
        yield from told
        return
    yield from _of_text(source, start, end)
    nested = [child for child in item.children if child.start >= end]
    if nested:
        yield ReviewToken(TokenKind.PROSE, source.text(nested[0].start, nested[-1].end))


def _of_label(source: Source, entry: LabelledValue, *, cell: bool) -> Iterator[ReviewToken]:
    """What a labelled value says; in a table it ends with its cell."""
    key, value, about = entry.key, entry.value, reviewer_word(entry.label, source.vocabulary)
    if key in _REVIEWER_KEYS:
        yield ReviewToken(TokenKind.REVIEWER, value)
    elif key in _DATE_KEYS:
        yield ReviewToken(TokenKind.DATE, value)
    elif key in _VERDICT_KEYS or (key in _VERDICT_OR_TEXT and leading_verdict(value)):
        yield from first_line_verdict(value)
    elif about and "verdict" in key:
        label = source.text(entry.start, value.start)
        yield ReviewToken(TokenKind.BEGIN)
        yield ReviewToken(TokenKind.REVIEWER, _name(label, 0, len(label.raw)))
        yield from first_line_verdict(value)
    elif about and not key.endswith("evaluation") and (told := _sentence(entry.whole)):
        yield from told
    elif about or key.endswith("evaluation") or key in _EVALUATION:
        if value.raw:
            yield ReviewToken(TokenKind.CELL if cell and not about else TokenKind.EVALUATION, value, about)
    else:
        yield ReviewToken(TokenKind.CELL, value) if cell else ReviewToken(TokenKind.PROSE, entry.whole)


def _sentence(text: Excerpt, *, known: bool = True) -> list[ReviewToken]:
    """``DRL: ENDORSE - why``, ``**DRL (ENDORSE):** why`` or ``ENDORSE (DRL): why``; empty for other text.

    With ``known`` the reviewer must be one of the register's.
    """
    vocabulary = text.source.vocabulary
    line = text.raw.partition("\n")[0]
    verdict = opinion_span(line, vocabulary.opinions)
    if verdict is None:
        return []
    behind = _BEHIND_VERDICT.match(line, verdict[1])
    longest = _LONGEST_NAME
    if line[: verdict[0]].strip(_MARKS):
        who, stated = (0, verdict[0]), (verdict[0], behind.end() if behind else verdict[1])
    elif behind:
        who, stated = behind.span("aside"), verdict
    else:
        # The reviewer alone on the rest of the line: ``ENDORSE - DRL``.
        who, stated = (verdict[1], len(line)), verdict
        known, longest = True, _LONGEST_ALONE
    name = _name(text, *who)
    separated = who[0] or _SEPARATED.search(line[: verdict[0]])
    named = reviewer_word(name.raw, vocabulary) is not None or not known
    if not (name.raw and separated and named and len(name.raw.split()) <= longest):
        return []
    why = _reason(text, max(stated[1], behind.end() if behind else 0, who[1]))
    found = [
        ReviewToken(TokenKind.BEGIN),
        ReviewToken(TokenKind.REVIEWER, name),
        ReviewToken(TokenKind.VERDICT, text.piece(*stated)),
    ]
    return [*found, ReviewToken(TokenKind.EVALUATION, why)] if why.raw else found


def _name(text: Excerpt, first: int, last: int) -> Excerpt:
    """A name without the marks around it."""
    piece = text.raw[first:last]
    first += len(piece) - len(piece.lstrip(_MARKS))
    return text.piece(first, first + len(piece.strip(_MARKS)))


def _reason(text: Excerpt, first: int) -> Excerpt:
    """What follows a verdict, without what separates the two."""
    separator = _BEFORE_REASON.match(text.raw, first)
    return text.piece(separator.end() if separator else first)
