"""Cross-reviews put together from their pieces: whose each verdict, evaluation and remark is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.review_pieces import Piece, What, leading_verdict, pieces
from finding_tickets.documents.reviewers import known_first, named_in_heading, opinion_span, reviewer_word
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Text

# Headings within a review that neither name a reviewer nor begin another review.
_TEXT = re.compile(
    r"(?:(?:detailed|overall|additional|technical) )?"
    r"(?:evaluation|analysis|rationale|reasoning|comment|note|detail|assessment|summary|recommendation|concern"
    r"|finding|question|suggestion|severity|evidence|verification|caveat|conclusion|recommended|suggested)s?\b.*"
)
_EVALUATION = "evaluation"
_VERDICT = re.compile(r"(?:final )?verdict\b.*")


@dataclass(frozen=True)
class Draft:
    """The pieces of one review; ``text`` is all of it."""

    text: Text
    reviewer: Text | None
    verdict: Text
    evaluation: Text | None
    remarks: tuple[Text, ...]
    date: Text | None


@dataclass(eq=False)
class _Sheet:
    """A review while it is being read; ``running`` says whether text that follows continues the last one.

    ``stated`` is which of the words are labelled as the evaluation; without any, the first are. ``aside``
    marks what a label announced as one reviewer's, to be put to the rest of that review.
    """

    reviewer: Text | None = None
    verdict: Text | None = None
    date: Text | None = None
    words: list[Text] = field(default_factory=list)
    running: bool = False
    stated: int | None = None
    aside: bool = False

    def write(self, source: Source, text: Text, *, running: bool = True, evaluation: bool = False) -> None:
        """Add to the evaluation, or a remark: what continues a text stays one with it."""
        if self.running and running and self.words and not evaluation:
            text = source.text(self.words.pop().span.start, text.span.end)
        if evaluation and self.stated is None:
            self.stated = len(self.words)
        self.words.append(text)
        self.running = running


def drafts(part: Part, outer: Sequence[Text] = ()) -> list[Draft]:
    """The reviews of a part and of the parts within it, in the order of the file.

    ``outer`` are the names in the headings above the part, the innermost first.
    """
    named = named_in_heading(part)
    region = _Region(part, [*([named] if named else []), *outer])
    end = part.parts[0].start if part.parts else part.end
    for piece in pieces(part.source, [block for block in part.blocks if block.start < end]):
        region.take(piece)
    for each in part.parts:
        region.enter(each)
    return region.finish()


class _Region:
    """The reviews of one part; ``names`` are those in its heading and in the headings above it."""

    def __init__(self, part: Part, names: Sequence[Text]) -> None:
        self.part, self.source, self.names = part, part.source, names
        self.sheets: list[_Sheet] = []
        self.current: _Sheet | None = None
        self.lead = _Sheet()
        self.labelled: list[tuple[str, _Sheet]] = []
        self.within: list[Draft] = []
        self.ended = False

    def take(self, piece: Piece) -> None:
        """Account for the next piece of the part."""
        text = piece.text
        if text is None:
            self.current = self._new() if piece.what is What.BEGIN else None
            self.ended = piece.what is What.END
        elif piece.what is What.REVIEWER:
            self._sheet("reviewer").reviewer = text
        elif piece.what is What.VERDICT:
            # Below a table of several reviews, a further verdict is that of all together.
            if self.current or not self.ended:
                self._sheet("verdict").verdict = text
        elif piece.what is What.DATE:
            self._sheet("date").date = text
        elif piece.about and (self.current is None or self._word(self.current) != piece.about):
            self.current = _Sheet(words=[text], running=True, aside=True)
            self.labelled.append((piece.about, self.current))
        else:
            self._write(piece.what, text)

    def enter(self, part: Part) -> None:
        """Account for a part within the part: text of the review above it, its verdict, or more reviews."""
        if _VERDICT.match(part.name):
            for piece in () if self.within else self._verdict(part):
                self.take(piece)
            return
        found = [] if _TEXT.match(part.name) else drafts(part, self.names)
        self.within += found
        if found:
            self.current = None
        else:
            whole = self.source.text(part.start, part.body.span.end)
            text = part.body if part.name.startswith(_EVALUATION) else whole
            if text.raw:
                self._write(What.PROSE, text)

    def finish(self) -> list[Draft]:
        """The reviews, each with a verdict: its own, or the one in the part's heading."""
        if not any(sheet.verdict for sheet in self.sheets) and not self.within:
            self._take_heading()
        sheets = [sheet for sheet in self.sheets if sheet.verdict]
        if len(sheets) == 1:
            sheets[0].words[:0] = self.lead.words
            if sheets[0].stated is not None:
                sheets[0].stated += len(self.lead.words)
        for word, text in self.labelled:
            mine = [sheet for sheet in sheets if self._word(sheet) == word] or (
                sheets if len(sheets) == 1 else []
            )
            if mine:
                mine[0].words += text.words
        alone = len(sheets) == 1 and not self.within
        return [*(self._draft(sheet, alone=alone) for sheet in sheets), *self.within]

    def _new(self) -> _Sheet:
        self.sheets.append(_Sheet())
        return self.sheets[-1]

    def _sheet(self, what: str) -> _Sheet:
        """The review that is being read, or a new one where it has this piece already."""
        if self.current is None or self.current.aside or getattr(self.current, what) is not None:
            self.current = self._new()
        return self.current

    def _write(self, what: What, text: Text) -> None:
        if self.current is None and not self.sheets and what is What.PROSE:
            told = leading_verdict(self.source, text)
            for piece in told:
                self.take(piece)
            if not told:
                self.lead.write(self.source, text)
        elif self.current is None and not self.sheets:
            self.lead.write(self.source, text, running=False)
        elif self.current is not None:
            self.current.write(
                self.source, text, running=what is not What.CELL, evaluation=what is What.EVALUATION
            )

    def _verdict(self, part: Part) -> Iterator[Piece]:
        """A part that is headed Verdict: what its heading states, else its first line, and the text below."""
        heading, body = part.heading, part.body
        colon = self.source.data.find(b":", heading.first, heading.last) if heading else -1
        title = self.source.text(colon + 1, heading.last) if heading and colon >= 0 else None
        if title and title.raw:
            yield Piece(What.VERDICT, title)
            rest = body
        else:
            first = body.span.start + len(body.raw.partition("\n")[0].encode())
            yield Piece(What.VERDICT, self.source.text(body.span.start, first))
            rest = self.source.text(first, body.span.end)
        if rest.raw:
            yield Piece(What.PROSE, rest)

    def _take_heading(self) -> None:
        """A heading may state the verdict: ``### DRL: ENDORSE``."""
        heading = self.part.heading
        if heading is None:
            return
        raw = self.source.raw(heading.first, heading.last)
        found = opinion_span(raw, 0, len(raw), self.source.vocabulary.opinions)
        if found:
            start = heading.first + len(raw[: found[0]].encode())
            sheet = self.sheets[0] if self.sheets else self._new()
            sheet.verdict = self.source.text(start, start + len(raw[slice(*found)].encode()))

    def _reviewer(self, sheet: _Sheet) -> Text | None:
        return known_first(self.source.vocabulary, sheet.reviewer, *self.names)

    def _word(self, sheet: _Sheet) -> str | None:
        reviewer = self._reviewer(sheet)
        return reviewer_word(plain(reviewer.raw), self.source.vocabulary) if reviewer else None

    def _draft(self, sheet: _Sheet, *, alone: bool) -> Draft:
        assert sheet.verdict is not None  # noqa: S101 - sheets without a verdict are left out before
        named = [text for text in (sheet.reviewer, sheet.verdict, sheet.date, *sheet.words) if text]
        start, end = min(text.span.start for text in named), max(text.span.end for text in named)
        at = sheet.stated or 0
        evaluation = sheet.words[at] if sheet.words else None
        return Draft(
            text=self.part.body if alone else self.source.text(start, end),
            reviewer=self._reviewer(sheet),
            verdict=sheet.verdict,
            evaluation=evaluation,
            remarks=tuple(text for text in sheet.words[:at] + sheet.words[at + 1 :] if text.raw),
            date=sheet.date,
        )
