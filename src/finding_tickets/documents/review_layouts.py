"""Cross-reviews put together from their tokens: whose each verdict, evaluation and remark is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from finding_tickets.documents.review_tokens import (
    ReviewToken,
    TokenKind,
    first_line_verdict,
    leading_verdict,
    opinion_of,
    opinion_span,
    review_tokens,
    reviewer_in_heading,
    reviewer_word,
)
from finding_tickets.documents.section_kinds import SectionKind
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Excerpt, Values

# Headings within a review that neither name a reviewer nor begin another review.
_TEXT = re.compile(
    r"(?:(?:detailed|overall|additional|technical) )?"
    r"(?:evaluation|analysis|rationale|reasoning|comment|note|detail|assessment|summary|recommendation|concern"
    r"|finding|question|suggestion|severity|evidence|verification|caveat|conclusion|recommended|suggested)s?\b.*"
)
_EVALUATION = "evaluation"
_VERDICT = re.compile(r"(?:final )?verdict\b.*")
_MARKS = " \t*`_:.,;-\u2013\u2014\u2192"
_ABOUT_REVIEWS = re.compile(
    r"\b(?:summary|consensus|synthesis|response|rebuttal|reply|request|outcome|resolution)\b"
)
_CROSS = re.compile(rb"(?i)#[^\r\n]*cross")
_IN_BRACKETS = re.compile(r"^\((.*)\)$")


def reviewing(sections: Iterable[DocumentPart]) -> list[DocumentPart]:
    """The parts that hold cross-reviews: sections, or without any of them parts within other sections.

    What sums reviews up or answers them holds none, unless it is all there is.
    """
    found = [part for part in sections if part.kind is SectionKind.CROSS_REVIEW]
    found = [part for part in found if not _ABOUT_REVIEWS.search(part.name)] or found
    if not found:
        within = (part for part in sections if _CROSS.search(part.source.data, part.start, part.end))
        inner = (each for part in within for each in part.parts if "cross" in each.name)
        found = [each for each in inner if each.kind is SectionKind.CROSS_REVIEW]
    return found


def read_reviews(part: DocumentPart) -> list[Values]:
    """The reviews in one cross-review section, in its order."""
    found = ReviewsOfPart(part, ()).read()
    if not found:
        part.source.report("review-form", part.start, f"no verdict found in {part.title!r}")
    return found


class ReviewSheet:
    """A review while it is being read; ``running`` says whether text that follows continues the last one.

    ``evaluation`` is which of the ``words`` are labelled as the evaluation; without any, the first are.
    ``aside`` marks what a label announced as one reviewer's, to be put to the rest of that review.
    """

    def __init__(self, *words: Excerpt, aside: bool = False) -> None:
        self.reviewer: Excerpt | None = None
        self.verdict: Excerpt | None = None
        self.date: Excerpt | None = None
        self.words = list(words)
        self.running = bool(words)
        self.evaluation: int | None = None
        self.aside = aside

    def write(self, text: Excerpt, kind: TokenKind) -> None:
        """Add to the evaluation, or a remark: what continues a text stays one with it."""
        running, stated = kind is not TokenKind.CELL, kind is TokenKind.EVALUATION
        # Two paragraphs in a row are one text; a cell or a label begins another.
        if self.running and running and self.words and not stated:
            text = text.source.text(self.words.pop().start, text.end)
        if stated and self.evaluation is None:
            self.evaluation = len(self.words)
        self.words.append(text)
        self.running = running


class ReviewsOfPart:
    """The reviews of a part and of the parts within it.

    ``names`` are the reviewers in its heading and in the headings above it, the innermost first.
    """

    def __init__(self, part: DocumentPart, outer: Sequence[Excerpt]) -> None:
        named = reviewer_in_heading(part.headline)
        self.part = part
        self.source = part.source
        self.names = [*([named] if named else []), *outer]
        self.sheets: list[ReviewSheet] = []
        self.current: ReviewSheet | None = None
        self.lead = ReviewSheet()
        self.labelled: list[tuple[str, ReviewSheet]] = []
        self.within: list[Values] = []
        self.ended = False

    def read(self) -> list[Values]:
        """The reviews, each with a verdict, in the order of the file."""
        part = self.part
        end = part.parts[0].start if part.parts else part.end
        for token in review_tokens(self.source, [block for block in part.blocks if block.start < end]):
            self._take(token)
        for each in part.parts:
            self._enter(each)
        heading = part.headline
        if heading and not any(sheet.verdict for sheet in self.sheets) and not self.within:
            # A heading may state the verdict: ``### DRL: ENDORSE``.
            found = opinion_span(heading.raw, self.source.vocabulary.opinions)
            if found:
                (self.sheets[0] if self.sheets else self._new()).verdict = heading.piece(*found)
        # Without a verdict it was a remark: a name or a date alone makes no review.
        sheets = [sheet for sheet in self.sheets if sheet.verdict]
        if len(sheets) == 1:
            sheets[0].words[:0] = self.lead.words
            if sheets[0].evaluation is not None:
                sheets[0].evaluation += len(self.lead.words)
        # Evaluations below a table of verdicts belong to the review of the one they name.
        for word, text in self.labelled:
            mine = [sheet for sheet in sheets if self._word(sheet) == word]
            for sheet in mine[:1] or (sheets if len(sheets) == 1 else []):
                sheet.words += text.words
        alone = len(sheets) == 1 and not self.within
        return [
            *(self._record(sheet, sheet.verdict, alone) for sheet in sheets if sheet.verdict),
            *self.within,
        ]

    def _take(self, token: ReviewToken) -> None:
        """Account for the next token of the part."""
        kind, text, about = token
        if text is None:
            self.current = self._new() if kind is TokenKind.BEGIN else None
            self.ended = kind is TokenKind.END
        elif kind is TokenKind.REVIEWER:
            self._sheet("reviewer").reviewer = text
        elif kind is TokenKind.VERDICT:
            # Below a table of several reviews, a further verdict is that of all together.
            if self.current or not self.ended:
                self._sheet("verdict").verdict = text
        elif kind is TokenKind.DATE:
            self._sheet("date").date = text
        elif about and (self.current is None or self._word(self.current) != about):
            self.current = ReviewSheet(text, aside=True)
            self.labelled.append((about, self.current))
        elif self.current is not None:
            self.current.write(text, kind)
        elif not self.sheets and kind is TokenKind.PROSE and (told := leading_verdict(text)):
            for each in told:
                self._take(each)
        elif not self.sheets:
            self.lead.write(text, TokenKind.PROSE if kind is TokenKind.PROSE else TokenKind.CELL)

    def _enter(self, part: DocumentPart) -> None:
        """Account for a part within the part: text of the review above it, its verdict, or more reviews."""
        if _VERDICT.match(part.name):
            if self.within:
                return
            # What the heading states, else the first line below it.
            label, colon, _ = part.headline.raw.partition(":") if part.headline else ("", "", "")
            stated = part.headline.piece(len(label) + 1) if part.headline and colon else None
            if stated and stated.raw:
                self._take(ReviewToken(TokenKind.VERDICT, stated))
                if part.body.raw:
                    self._take(ReviewToken(TokenKind.PROSE, part.body))
            else:
                for token in first_line_verdict(part.body):
                    self._take(token)
            return
        found = [] if _TEXT.match(part.name) else ReviewsOfPart(part, self.names).read()
        self.within += found
        if found:
            self.current = None
        else:
            whole = self.source.text(part.start, part.body.end)
            text = part.body if part.name.startswith(_EVALUATION) else whole
            if text.raw:
                self._take(ReviewToken(TokenKind.PROSE, text))

    def _new(self) -> ReviewSheet:
        self.sheets.append(ReviewSheet())
        return self.sheets[-1]

    def _sheet(self, what: str) -> ReviewSheet:
        """The review that is being read, or a new one where it has this piece already."""
        if self.current is None or self.current.aside or getattr(self.current, what) is not None:
            self.current = self._new()
        return self.current

    def _reviewer(self, sheet: ReviewSheet) -> Excerpt | None:
        """The first whom the register knows of those that may be the reviewer, else the first of them."""
        named = [text for text in (sheet.reviewer, *self.names) if text and text.raw]
        known = (text for text in named if reviewer_word(text.plain, self.source.vocabulary))
        return next(known, named[0] if named else None)

    def _word(self, sheet: ReviewSheet) -> str | None:
        reviewer = self._reviewer(sheet)
        return reviewer_word(reviewer.plain, self.source.vocabulary) if reviewer else None

    def _record(self, sheet: ReviewSheet, verdict: Excerpt, alone: bool) -> Values:
        """The fields of a ``Review``; reports what is not in the words of the register."""
        vocabulary = self.source.vocabulary
        texts = [text for text in (sheet.reviewer, verdict, sheet.date, *sheet.words) if text]
        start, end = min(text.start for text in texts), max(text.end for text in texts)
        whole = self.part.body if alone else self.source.text(start, end)
        reviewer = self._reviewer(sheet)
        word = reviewer_word(reviewer.plain, vocabulary) if reviewer else None
        if reviewer is None:
            whole.report("review-reviewer", "the cross-review does not name its reviewer")
        elif word is None and vocabulary.agents:
            hint = f"the agents of this register are {', '.join(vocabulary.agents)}"
            reviewer.report("unknown-word", f"the reviewer is {reviewer.plain!r}", hint)
        opinion = opinion_of(verdict.raw, vocabulary.opinions)
        if opinion is None:
            hint = f"one of {', '.join(vocabulary.opinions)}"
            verdict.report("unknown-word", f"the verdict is {verdict.plain!r}", hint)
        # What stands behind the opinion is a condition, or the reason where none is given elsewhere.
        stated = opinion_span(verdict.raw, vocabulary.opinions)
        behind = verdict.raw[stated[1] :].lstrip(_MARKS) if stated else ""
        rest = verdict.piece(len(verdict.raw) - len(behind)) if any(map(str.isalnum, behind)) else None
        at = sheet.evaluation or 0
        evaluation = sheet.words[at] if sheet.words else rest
        remarks = [text.record() for text in sheet.words[:at] + sheet.words[at + 1 :] if text.raw]
        return whole.record(
            reviewer=reviewer.record(value=word or reviewer.plain) if reviewer else None,
            verdict=verdict.record(value=verdict.plain),
            opinion=opinion,
            condition=_IN_BRACKETS.sub(r"\1", rest.plain.strip(_MARKS)) if rest else "",
            evaluation=evaluation.record() if evaluation else None,
            remarks=remarks,
            date=sheet.date.record(value=sheet.date.plain) if sheet.date else None,
        )
