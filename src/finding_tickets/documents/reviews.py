"""Cross-reviews: who reviewed a finding, with which verdict, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.inline import plain
from finding_tickets.documents.metadata import field
from finding_tickets.documents.parts import Part
from finding_tickets.documents.review_forms import Draft, drafts
from finding_tickets.documents.reviewers import opinion_of, opinion_span, reviewer_word
from finding_tickets.documents.roles import Role
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Review
from finding_tickets.model.vocabulary import Opinion

_MARKS = " \t*`_:.,;-\u2013\u2014\u2192"
_ABOUT = re.compile(r"\b(?:summary|consensus|synthesis|response|rebuttal|reply|request|outcome|resolution)\b")
_CROSS = re.compile(rb"(?i)#[^\r\n]*cross")
_CLOSED = re.compile(r"^\((.*)\)$")


def reviewing(sections: Iterable[Part]) -> list[Part]:
    """The parts that hold cross-reviews: sections, or without any of them parts within other sections.

    What sums reviews up or answers them holds none, unless it is all there is.
    """
    found = [part for part in sections if part.role is Role.CROSS_REVIEW]
    return [part for part in found if not _ABOUT.search(part.name)] or found or list(_within(sections))


def _within(sections: Iterable[Part]) -> Iterator[Part]:
    for part in sections:
        if _CROSS.search(part.source.data, part.start, part.end):
            inner = [each for each in part.parts if "cross" in each.name]
            yield from (each for each in inner if each.role is Role.CROSS_REVIEW)


def read_reviews(part: Part) -> tuple[Review, ...]:
    """The reviews in one cross-review section, in its order."""
    found = drafts(part)
    if not found:
        part.source.report("review-form", part.start, f"no verdict found in {part.title!r}")
    return tuple(_review(part.source, draft) for draft in found)


def _review(source: Source, draft: Draft) -> Review:
    opinion, rest = _opinion(source, draft), _beside_opinion(source, draft.verdict)
    return Review(
        raw=draft.text.raw,
        span=draft.text.span,
        reviewer=_reviewer(source, draft),
        verdict=field(draft.verdict, plain(draft.verdict.raw)),
        opinion=opinion,
        condition=_CLOSED.sub(r"\1", plain(rest.raw).strip(_MARKS)) if rest else "",
        evaluation=draft.evaluation or rest,
        remarks=draft.remarks,
        date=field(draft.date, plain(draft.date.raw)) if draft.date else None,
    )


def _beside_opinion(source: Source, verdict: Text) -> Text | None:
    """What a verdict says behind its opinion: a condition, or the reason where none is given elsewhere."""
    found = opinion_span(verdict.raw, 0, len(verdict.raw), source.vocabulary.opinions)
    if found is None:
        return None
    behind = verdict.raw[found[1] :]
    start = verdict.span.end - len(behind.lstrip(_MARKS).encode())
    text = source.text(start, verdict.span.end)
    return text if any(map(str.isalnum, text.raw)) else None


def _opinion(source: Source, draft: Draft) -> Opinion | None:
    words = source.vocabulary.opinions
    opinion = opinion_of(draft.verdict.raw, words)
    if opinion is None:
        message, hint = f"the verdict is {plain(draft.verdict.raw)!r}", f"one of {', '.join(words)}"
        source.report("unknown-word", draft.verdict.span.start, message, hint=hint)
    return opinion


def _reviewer(source: Source, draft: Draft) -> Field[str] | None:
    if draft.reviewer is None:
        source.report("review-reviewer", draft.text.span.start, "the cross-review does not name its reviewer")
        return None
    name = plain(draft.reviewer.raw)
    word = reviewer_word(name, source.vocabulary)
    if word is None and source.vocabulary.agents:
        hint = f"the agents of this register are {', '.join(source.vocabulary.agents)}"
        source.report("unknown-word", draft.reviewer.span.start, f"the reviewer is {name!r}", hint=hint)
    return field(draft.reviewer, word or name)
