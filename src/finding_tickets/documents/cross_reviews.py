"""Cross-reviews: the blocks of a section become tokens, and the tokens become reviews.

Each reviewer writes in another form: a heading, a table by rows or columns, labels. All forms become the same
tokens. A fact that the current review has already begins the next review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from finding_tickets.documents.metadata import LabelledValue, labelled_values, labels_in
from finding_tickets.documents.sections import CROSS_REVIEW_TITLE, DocumentPart, SectionKind
from finding_tickets.documents.source import Block, Excerpt, MarkdownTable, Source, Values
from finding_tickets.model.vocabulary import Opinion, Vocabulary, Words, squeeze, word_for

_BEFORE_NAME = re.compile(r"[\W\d_]*(?:(?:reviews? )?(?:by|from)\s+)?", re.IGNORECASE)
_TO_LAST_WORD = re.compile(r"(?:.*[^\W_])?", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t)?")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_NEGATIONS = frozenset(["not", "no", "cannot", "don't", "can't", "without", "neither", "non"])
# A shorter spelling, such as "rl", is part of many words that name nobody.
_LEAST_WITHIN_A_WORD = 3

# Titles of columns, the best first.
_VERDICT = "verdict"
_REVIEWERS = ("agent", "reviewer", "specialist", "expert", "by", "domain")
_EVALUATIONS = (
    *("evaluation", "comment", "comments", "notes", "note"),
    *("rationale", "reasoning", "justification"),
)
_DATES = ("date", "reviewed")
_KNOWN = frozenset(
    [_VERDICT, *_REVIEWERS, *_EVALUATIONS, *_DATES, "#", "confidence", "severity", "priority", ""]
)
_LABEL_AND_VALUE = 2
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")

# Labels, as they are compared.
_VERDICT_KEYS = frozenset(["verdict", "opinion", "vote", "finalverdict"])
_REVIEWER_KEYS = frozenset(["reviewer", "agent", "specialist", "reviewedby", "expert", "reviewers"])
_DATE_KEYS = frozenset(["date", "reviewdate", "reviewed", "reviewedon"])

_MARKS = " \t*`_:.,;-\u2013\u2014"
_MARKS_OF_CONDITION = _MARKS + "\u2192"

_ABOUT_REVIEWS = re.compile(
    r"\b(?:summary|consensus|synthesis|response|rebuttal|reply|request|outcome|resolution)\b"
)
_WHOLLY_IN_BRACKETS = re.compile(r"^\((.*)\)$")

_FACTS = ("reviewer", "verdict", "date")
ReviewRow = dict[str, Excerpt]


class ReviewToken(NamedTuple):
    """A piece of a review; ``begin`` starts a review, and text after ``end`` belongs to none.

    ``about`` is the register's word for the reviewer whom a label names.
    """

    kind: Literal["begin", "end", "reviewer", "verdict", "evaluation", "date", "cell", "prose"]
    text: Excerpt
    about: str | None = None


# Reviewers and opinions.


def reviewer_word(name: str, vocabulary: Vocabulary) -> str | None:
    """Return the register's word for the first reviewer in ``name``: ``drl`` for ``DRL Specialist``.

    A spelling of two letters must be a word of its own.
    """
    whole = squeeze(name)
    within = [each for each in vocabulary.known_agents.spellings if each[0] in whole]
    tokens = [squeeze(token) for token in _BETWEEN_WORDS.split(name)] if within else []
    found = [
        (whole.find(spelling), word)
        for spelling, word in within
        if spelling in tokens or len(spelling) >= _LEAST_WITHIN_A_WORD
    ]
    return min(found)[1] if found else None


def _reviewer_in_heading(headline: Excerpt) -> Excerpt:
    """The name in ``Cross-Review (DRL)``, ``DRL Cross-Review`` or ``1. DRL``, without verdict and date."""
    raw, start, end = headline.raw, 0, len(headline.raw)
    if title := CROSS_REVIEW_TITLE.search(raw):
        behind = _to_last_word(raw[title.end() :]).strip()
        start, end = (title.end(), end) if behind else (0, title.start())
    verdict = _opinion_span(raw, headline.source.vocabulary.opinions, start, end)
    end = verdict[0] if verdict else end
    before = _BEFORE_NAME.match(raw[start:end])
    start = min(start + before.end(), end) if before else start
    return headline.piece(start, start + len(_to_last_word(raw[start:end])))


def _to_last_word(text: str) -> str:
    """Return a text up to its last word."""
    # Patterns that are searched for up to an end take the square of a line's length.
    return _TO_LAST_WORD.match(text)[0]  # type: ignore[index] # it matches any text


def _opinion_span(
    text: str, opinions: Words, start: int = 0, end: int | None = None
) -> tuple[int, int] | None:
    """Return the span of the first word in ``text[start:end]`` that is an opinion and is not negated."""
    before = ""
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        if before not in _NEGATIONS and word_for(match[0], opinions):
            return match.span()
        before = match[0].lower().replace("\u2019", "'")
    return None


# From blocks to tokens.


def _review_tokens(source: Source, blocks: Iterable[Block]) -> Iterator[ReviewToken]:
    """Yield the tokens of ``blocks`` without headings, in the order of the file."""
    above: list[str] = []
    for block in blocks:
        text = source.whole(block)
        if block.kind == "Table":
            table = source.table(block)
            rows = _review_rows(table)
            if rows:
                above = table.titles
                yield from _of_rows(rows, text)
                continue
            for entry in labelled_values(source, [block]):
                yield from _of_label(entry, cell=True)
        elif block.kind == "Paragraph":
            stray = _stray_rows(text, above) if above else []
            yield from _of_rows(stray, text) if stray else _of_text(text)
        elif block.kind != "Rule":
            yield ReviewToken("prose", text)


def _review_rows(table: MarkdownTable) -> list[ReviewRow]:
    """Return the reviews of a table as ``{column title: cell}``; none where it has no verdicts."""
    # A table of two columns may be one of fields, of which a verdict is the first.
    is_of_fields = len(table.titles) == _LABEL_AND_VALUE and not _KNOWN.issuperset(table.titles)
    return table.records if _VERDICT in table.titles and not is_of_fields else []


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


def _of_rows(rows: Sequence[ReviewRow], whole: Excerpt) -> Iterator[ReviewToken]:
    for row in rows:
        reviewer = next((title for title in _REVIEWERS if title in row and row[title].raw), "")
        date = next((title for title in _DATES if title in row), "")
        texts = [title for title in row if title not in (_VERDICT, reviewer, date, "#", "domain")]
        # The evaluation comes first, then remarks.
        texts.sort(key=[*_EVALUATIONS, *texts].index)
        if not row[_VERDICT].raw:
            continue
        yield ReviewToken("begin", whole)
        if reviewer:
            yield ReviewToken("reviewer", row[reviewer])
        yield ReviewToken("verdict", row[_VERDICT])
        yield from (ReviewToken("cell", row[title]) for title in texts)
        if date:
            yield ReviewToken("date", row[date])
    if len(rows) > 1:
        yield ReviewToken("end", whole)


def _of_text(text: Excerpt) -> Iterator[ReviewToken]:
    """Yield the text of a paragraph and the labelled values within it."""
    found = list(labels_in(text.source, text))
    before = text.source.text(text.start, found[0].start if found else text.end)
    if before.raw:
        yield ReviewToken("prose", before)
    for entry in found:
        yield from _of_label(entry, cell=False)


def _of_label(entry: LabelledValue, *, cell: bool) -> Iterator[ReviewToken]:
    """Yield the tokens of a labelled value; in a table it ends with its cell."""
    key, value = entry.key, entry.value
    about = reviewer_word(entry.label, value.source.vocabulary)
    if key in _REVIEWER_KEYS:
        yield ReviewToken("reviewer", value)
    elif key in _DATE_KEYS:
        yield ReviewToken("date", value)
    elif key in _VERDICT_KEYS:
        yield ReviewToken("verdict", value)
    elif about or key.endswith("evaluation") or key in _EVALUATIONS:
        if value.raw:
            yield ReviewToken("cell" if cell and not about else "evaluation", value, about)
    else:
        yield ReviewToken("cell", value) if cell else ReviewToken("prose", entry.whole)


# From tokens to reviews.


def read_reviews(sections: Iterable[DocumentPart]) -> list[Values]:
    """Return the reviews in all sections of cross-reviews.

    Summaries of reviews and answers to them are skipped, unless there is nothing else.
    """
    found = [part for part in sections if part.kind is SectionKind.CROSS_REVIEW]
    found = [part for part in found if not _ABOUT_REVIEWS.search(part.name)] or found
    reviews = []
    for part in found:
        own = ReviewsOfPart(part).read()
        if not own:
            part.source.report("review-form", part.start, f"no verdict found in {part.title!r}")
        reviews += own
    return reviews


@dataclass
class ReviewSheet:
    """A review while it is being read.

    The evaluation is the ``labelled`` one or else the first of the ``words``. An ``aside`` is text under a
    label with a reviewer's name: it joins that one's review.
    """

    words: list[Excerpt] = field(default_factory=list)
    facts: dict[str, Excerpt] = field(default_factory=dict)
    labelled: Excerpt | None = None
    aside: bool = False

    def write(self, token: ReviewToken) -> None:
        """Add to the evaluation, or a remark."""
        if token.kind == "evaluation" and self.labelled is None:
            self.labelled = token.text
        self.words.append(token.text)


@dataclass
class ReviewsOfPart:
    """The reviews of a part and of the parts within it.

    ``named`` is the reviewer in its heading.
    """

    part: DocumentPart
    named: Excerpt | None = None
    sheets: list[ReviewSheet] = field(default_factory=list)
    current: ReviewSheet | None = None
    labelled: list[tuple[str, ReviewSheet]] = field(default_factory=list)
    within: list[Values] = field(default_factory=list)

    def read(self) -> list[Values]:
        """The reviews, each with a verdict, in the order of the file."""
        part, source = self.part, self.part.source
        self.named = _reviewer_in_heading(part.headline) if part.headline else None
        end = part.parts[0].start if part.parts else part.end
        for token in _review_tokens(source, [block for block in part.blocks if block.start < end]):
            self._take(token)
        for each in part.parts:
            self._enter(each)
        # Without a verdict it was a remark: a name or a date alone makes no review.
        sheets = [sheet for sheet in self.sheets if "verdict" in sheet.facts]
        # Evaluations below a table of verdicts belong to the review of the one they name.
        for word, aside in self.labelled:
            mine = [sheet for sheet in sheets if self._reviewer(sheet)[1] == word]
            for sheet in mine[:1]:
                sheet.words += aside.words
        alone = len(sheets) == 1 and not self.within
        return [*(self._record(sheet, alone) for sheet in sheets), *self.within]

    def _take(self, token: ReviewToken) -> None:
        """Account for the next token of the part."""
        kind, text, about = token
        current = self.current
        if kind in ("begin", "end"):
            self.current = ReviewSheet() if kind == "begin" else None
            self.sheets += [self.current] if self.current else []
        elif kind in _FACTS:
            if current is None and self.sheets and kind == "verdict":
                return  # Below a table of several reviews, a further verdict is that of all together.
            if current is None or current.aside or kind in current.facts:
                self.current = current = ReviewSheet()
                self.sheets.append(current)
            current.facts[kind] = text
        elif about and (current is None or self._reviewer(current)[1] != about):
            self.current = ReviewSheet([text], aside=True)
            self.labelled.append((about, self.current))
        elif current is not None:
            current.write(token)

    def _enter(self, part: DocumentPart) -> None:
        """Account for a part within the part: more reviews, or text of the review above it."""
        found = ReviewsOfPart(part).read()
        self.within += found
        if found:
            self.current = None
            return
        labelled = part.name.startswith("evaluation")
        text = part.body if labelled else part.source.text(part.start, part.body.end)
        if text.raw:
            self._take(ReviewToken("prose", text))

    def _reviewer(self, sheet: ReviewSheet) -> tuple[Excerpt | None, str | None]:
        """The first whom the register knows of those that may be the reviewer, else the first of them."""
        named = [each for each in (sheet.facts.get("reviewer"), self.named) if each and each.raw]
        words = [(name, reviewer_word(name.plain, name.source.vocabulary)) for name in named]
        return next((each for each in words if each[1]), words[0] if words else (None, None))

    def _record(self, sheet: ReviewSheet, alone: bool) -> Values:
        """The fields of a ``Review``; reports what is not in the words of the register."""
        verdict, date = sheet.facts["verdict"], sheet.facts.get("date")
        vocabulary = verdict.source.vocabulary
        texts = [*sheet.facts.values(), *sheet.words]
        start, end = min(text.start for text in texts), max(text.end for text in texts)
        whole = self.part.body if alone else verdict.source.text(start, end)
        reviewer, word = self._reviewer(sheet)
        if reviewer is None:
            whole.report("review-reviewer", "the cross-review does not name its reviewer")
        elif word is None and vocabulary.agents:
            reviewer.report_unknown("the reviewer", vocabulary.agents)
        stated = _opinion_span(verdict.raw, vocabulary.opinions)
        opinion = word_for(verdict.raw[slice(*stated)], vocabulary.opinions) if stated else None
        if opinion is None:
            verdict.report_unknown("the verdict", vocabulary.opinions)
        # What stands behind the opinion is a condition, or the reason where none is given elsewhere.
        behind = verdict.raw[stated[1] :].lstrip(_MARKS_OF_CONDITION) if stated else ""
        rest = verdict.piece(len(verdict.raw) - len(behind)) if any(map(str.isalnum, behind)) else None
        evaluation = sheet.labelled or (sheet.words[0] if sheet.words else rest)
        return whole.record(
            reviewer=reviewer.record(value=word or reviewer.plain) if reviewer else None,
            verdict=verdict.record(value=verdict.plain),
            opinion=Opinion(opinion) if opinion else None,
            condition=_WHOLLY_IN_BRACKETS.sub(r"\1", rest.plain.strip(_MARKS_OF_CONDITION)) if rest else "",
            evaluation=evaluation.record() if evaluation else None,
            remarks=[text.record() for text in sheet.words if text.raw and text is not evaluation],
            date=date.record(value=date.plain) if date else None,
        )
