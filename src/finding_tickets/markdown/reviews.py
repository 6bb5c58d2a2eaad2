"""Cross-reviews: who reviewed a finding, with which verdict, and why."""

from __future__ import annotations

from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.metadata import field
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.review_forms import Draft, drafts
from finding_tickets.markdown.reviewers import opinion_of, reviewer_word
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Field
from finding_tickets.model.ticket import Review
from finding_tickets.model.vocabulary import Opinion


def read_reviews(part: Part) -> tuple[Review, ...]:
    """The reviews in one cross-review section, in its order."""
    found = list(drafts(part))
    if not found:
        part.source.report("review-form", part.start, f"no verdict found in {part.title!r}")
    return tuple(_review(part.source, draft) for draft in found)


def _review(source: Source, draft: Draft) -> Review:
    return Review(
        raw=draft.text.raw,
        span=draft.text.span,
        reviewer=_reviewer(source, draft),
        verdict=field(draft.verdict, plain(draft.verdict.raw)),
        opinion=_opinion(source, draft),
        condition="",
        evaluation=draft.evaluation,
        remarks=(),
        date=None,
    )


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
    if word is None:
        hint = f"the agents of this register are {', '.join(source.vocabulary.agents)}"
        source.report("unknown-word", draft.reviewer.span.start, f"the reviewer is {name!r}", hint=hint)
    return field(draft.reviewer, word or name)
