"""Cross-reviews: the blocks of a section become reviews.

Each reviewer writes in another form: a heading, a table by rows or columns, labels. All forms state facts of
a review or add remarks to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from finding_tickets.documents.metadata import LabelledValue, labelled_values, labels_in
from finding_tickets.documents.sections import (
    CROSS_REVIEW_TITLE,
    DocumentPart,
    SectionKind,
)
from finding_tickets.documents.source import Block, Excerpt, MarkdownTable, Values
from finding_tickets.model.vocabulary import (
    Opinion,
    Vocabulary,
    Words,
    squeeze,
    word_for,
)

_BEFORE_NAME = re.compile(r"[\W\d_]*(?:(?:reviews? )?(?:by|from)\s+)?", re.IGNORECASE)
_TO_LAST_WORD = re.compile(r"(?:.*[^\W_])?", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t)?")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_NEGATIONS = frozenset(
    ["not", "no", "cannot", "don't", "can't", "without", "neither", "non"]
)
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
    [
        _VERDICT,
        *_REVIEWERS,
        *_EVALUATIONS,
        *_DATES,
        "#",
        "confidence",
        "severity",
        "priority",
        "",
    ]
)
_LABEL_AND_VALUE = 2
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")

# The labels of the facts of a review, as they are compared.
_FACTS = {
    "verdict": {"verdict", "opinion", "vote", "finalverdict"},
    "reviewer": {
        "reviewer",
        "agent",
        "specialist",
        "reviewedby",
        "expert",
        "reviewers",
    },
    "date": {"date", "reviewdate", "reviewed", "reviewedon"},
}

_MARKS = " \t*`_:.,;-\u2013\u2014"
_MARKS_OF_CONDITION = _MARKS + "\u2192"

_ABOUT_REVIEWS = re.compile(
    r"\b(?:summary|consensus|synthesis|response|rebuttal|reply|request|outcome|resolution)\b"
)
_WHOLLY_IN_BRACKETS = re.compile(r"^\((.*)\)$")

ReviewRow = dict[str, Excerpt]


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
    verdict = _opinion_in(raw, headline.source.vocabulary.opinions, start, end)
    end = verdict.start() if verdict else end
    before = _BEFORE_NAME.match(raw[start:end])
    start = min(start + before.end(), end) if before else start
    return headline.piece(start, start + len(_to_last_word(raw[start:end])))


def _to_last_word(text: str) -> str:
    """Return a text up to its last word."""
    # Patterns that are searched for up to an end take the square of a line's length.
    return _TO_LAST_WORD.match(text)[0]  # type: ignore[index] # it matches any text


def _opinion_in(
    text: str, opinions: Words, start: int, end: int
) -> re.Match[str] | None:
    """Return the first word in ``text[start:end]`` that is an opinion and is not negated."""
    before = ""
    for match in _WORD.finditer(text, start, end):
        if before not in _NEGATIONS and word_for(match[0], opinions):
            return match
        before = match[0].lower().replace("\u2019", "'")
    return None


# From blocks to reviews.


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
            part.source.report(
                "review-form", part.start, f"no verdict found in {part.title!r}"
            )
        reviews += own
    return reviews


def _review_rows(table: MarkdownTable) -> list[ReviewRow]:
    """Return the reviews of a table as ``{column title: cell}``; none where it has no verdicts."""
    # A table of two columns may be one of fields, of which a verdict is the first.
    is_of_fields = len(table.titles) == _LABEL_AND_VALUE and not _KNOWN.issuperset(
        table.titles
    )
    return table.records if _VERDICT in table.titles and not is_of_fields else []


def _stray_rows(text: Excerpt, titles: Sequence[str]) -> list[ReviewRow]:
    """A paragraph that is written as rows of the table above it, which has these ``titles``."""
    rows = []
    for line in _LINE.finditer(text.raw):
        written = text.piece(*line.span())
        pieces = written.raw[1:-1].split("|", len(titles) - 1)
        if not (
            written.raw.startswith("|")
            and written.raw.endswith("|")
            and len(pieces) == len(titles)
        ):
            return []
        row, at = ReviewRow(), 1
        for title, piece in zip(titles, pieces, strict=True):
            row[title] = written.piece(at, at + len(piece))
            at += len(piece) + 1
        rows.append(row)
    text.report(
        "table-header", "a table row without a header; read with the table above"
    )
    return rows


@dataclass
class ReviewSheet:
    """A review while it is being read.

    The evaluation is the ``labelled`` one or else the first of the ``words``. Text under a label with a
    reviewer's name, whom it is ``about``, joins that one's review.
    """

    words: list[Excerpt] = field(default_factory=list)
    facts: dict[str, Excerpt] = field(default_factory=dict)
    labelled: Excerpt | None = None
    about: str | None = None


class ReviewsOfPart:
    """The reviews of a part and of the parts within it; the heading may name the reviewer."""

    def __init__(self, part: DocumentPart) -> None:
        self.part = part
        self._named = _reviewer_in_heading(part.headline) if part.headline else None
        self._sheets: list[ReviewSheet] = []
        self._asides: list[ReviewSheet] = []
        self._current: ReviewSheet | None = None
        self._titles: Sequence[str] = ()

    def read(self) -> list[Values]:
        """The reviews, each with a verdict, in the order of the file."""
        part, within = self.part, list[Values]()
        end = part.parts[0].start if part.parts else part.end
        for block in part.blocks:
            if block.start < end:
                self._read_block(block)
        for each in part.parts:
            # More reviews, or text of the review above it.
            if found := ReviewsOfPart(each).read():
                within += found
                self._current = None
                continue
            is_labelled = each.name.startswith("evaluation")
            text = (
                each.body
                if is_labelled
                else each.source.text(each.start, each.body.end)
            )
            if text.raw:
                self._remark(text)
        # Without a verdict it was a remark: a name or a date alone makes no review.
        sheets = [sheet for sheet in self._sheets if "verdict" in sheet.facts]
        # Evaluations below a table of verdicts belong to the review of the one they name.
        for aside in self._asides:
            mine = [
                sheet for sheet in sheets if self._reviewer(sheet)[1] == aside.about
            ]
            for sheet in mine[:1]:
                sheet.words += aside.words
        is_alone = len(sheets) == 1 and not within
        return [*(self._record(sheet, is_alone) for sheet in sheets), *within]

    def _read_block(self, block: Block) -> None:
        source = self.part.source
        text = source.whole(block)
        if block.kind == "Table":
            table = source.table(block)
            if rows := _review_rows(table):
                self._titles = table.titles
                self._read_rows(rows)
                return
            for entry in labelled_values(source, [block]):
                self._read_label(entry, is_cell=True)
        elif block.kind == "Paragraph":
            if rows := _stray_rows(text, self._titles) if self._titles else []:
                self._read_rows(rows)
                return
            found = list(labels_in(source, text))
            before = source.text(text.start, found[0].start if found else text.end)
            if before.raw:
                self._remark(before)
            for entry in found:
                self._read_label(entry)
        elif block.kind != "Rule":
            self._remark(text)

    def _read_rows(self, rows: Sequence[ReviewRow]) -> None:
        """Begin a review for each row with a verdict; what follows several belongs to none of them."""
        for row in rows:
            reviewer = next(
                (title for title in _REVIEWERS if title in row and row[title].raw), ""
            )
            date = next((title for title in _DATES if title in row), "")
            texts = [
                title
                for title in row
                if title not in (_VERDICT, reviewer, date, "#", "domain")
            ]
            # The evaluation comes first, then remarks.
            texts.sort(key=[*_EVALUATIONS, *texts].index)
            if row[_VERDICT].raw:
                stated = {"reviewer": reviewer, "verdict": _VERDICT, "date": date}
                facts = {fact: row[title] for fact, title in stated.items() if title}
                self._current = ReviewSheet([row[title] for title in texts], facts)
                self._sheets.append(self._current)
        if len(rows) > 1:
            self._current = None

    def _read_label(self, entry: LabelledValue, *, is_cell: bool = False) -> None:
        """Account for a labelled value; in a table it ends with its cell."""
        key, value = entry.key, entry.value
        about = reviewer_word(entry.label, value.source.vocabulary)
        for fact, keys in _FACTS.items():
            if key in keys:
                self._state(fact, value)
                return
        if about or key.endswith("evaluation") or key in _EVALUATIONS:
            if value.raw:
                self._remark(value, about, is_labelled=bool(about) or not is_cell)
        else:
            self._remark(value if is_cell else entry.whole)

    def _state(self, fact: str, text: Excerpt) -> None:
        """Add a fact to the current review. One that it has already begins the next review."""
        current = self._current
        if current is None and self._sheets and fact == "verdict":
            return  # Below a table of several reviews, a further verdict is that of all together.
        if current is None or current.about or fact in current.facts:
            self._current = current = ReviewSheet()
            self._sheets.append(current)
        current.facts[fact] = text

    def _remark(
        self, text: Excerpt, about: str | None = None, *, is_labelled: bool = False
    ) -> None:
        """Add text to the current review, or begin an aside about a reviewer."""
        current = self._current
        if about and (current is None or self._reviewer(current)[1] != about):
            self._current = ReviewSheet([text], about=about)
            self._asides.append(self._current)
        elif current is not None:
            if is_labelled and current.labelled is None:
                current.labelled = text
            current.words.append(text)

    def _reviewer(self, sheet: ReviewSheet) -> tuple[Excerpt | None, str | None]:
        """The first whom the register knows of those that may be the reviewer, else the first of them."""
        named = [
            each
            for each in (sheet.facts.get("reviewer"), self._named)
            if each and each.raw
        ]
        words = [
            (name, reviewer_word(name.plain, name.source.vocabulary)) for name in named
        ]
        return next(
            (each for each in words if each[1]), words[0] if words else (None, None)
        )

    def _record(self, sheet: ReviewSheet, is_alone: bool) -> Values:
        """The fields of a ``Review``; reports what is not in the words of the register."""
        verdict, date = sheet.facts["verdict"], sheet.facts.get("date")
        vocabulary = verdict.source.vocabulary
        texts = [*sheet.facts.values(), *sheet.words]
        start, end = min(text.start for text in texts), max(text.end for text in texts)
        whole = self.part.body if is_alone else verdict.source.text(start, end)
        reviewer, word = self._reviewer(sheet)
        if reviewer is None:
            whole.report(
                "review-reviewer", "the cross-review does not name its reviewer"
            )
        elif word is None and vocabulary.agents:
            reviewer.report_unknown("the reviewer", vocabulary.agents)
        stated = _opinion_in(verdict.raw, vocabulary.opinions, 0, len(verdict.raw))
        opinion = word_for(stated[0], vocabulary.opinions) if stated else None
        if opinion is None:
            verdict.report_unknown("the verdict", vocabulary.opinions)
        # What stands behind the opinion is a condition, or the reason where none is given elsewhere.
        behind = (
            verdict.raw[stated.end() :].lstrip(_MARKS_OF_CONDITION) if stated else ""
        )
        rest = (
            verdict.piece(len(verdict.raw) - len(behind))
            if any(map(str.isalnum, behind))
            else None
        )
        evaluation = sheet.labelled or (sheet.words[0] if sheet.words else rest)
        return whole.record(
            reviewer=reviewer.record(value=word or reviewer.plain)
            if reviewer
            else None,
            verdict=verdict.record(value=verdict.plain),
            opinion=Opinion(opinion) if opinion else None,
            condition=_WHOLLY_IN_BRACKETS.sub(
                r"\1", rest.plain.strip(_MARKS_OF_CONDITION)
            )
            if rest
            else "",
            evaluation=evaluation.record() if evaluation else None,
            remarks=[
                text.record()
                for text in sheet.words
                if text.raw and text is not evaluation
            ],
            date=date.record(value=date.plain) if date else None,
        )
