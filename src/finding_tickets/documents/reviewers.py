"""Who reviewed, and which opinion a verdict states, in the words of the register."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from finding_tickets.documents.inline import plain
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import Opinion, Vocabulary, Words, spelled, squeeze, word_for

if TYPE_CHECKING:
    from finding_tickets.documents.parts import Part

_TITLE = re.compile(r"(?:cross|peer)\W*(?:agent\W*)?reviews?\b", re.IGNORECASE)
_PLAIN_TITLE = re.compile(
    r"(?:(?:(?:specialist|expert|agent|domain|independent)s?|reviewer)\W+)?(?:reviews?|verdicts)"
    r"(?: (?:verdicts?|summary|notes))?|reviewers?",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_LEAD = re.compile(r"[\W\d_]*(?:(?:reviews? )?(?:by|from)\s+)?", re.IGNORECASE)
_TAIL = re.compile(r"[\W_]*(?:\d{4}-\d\d-\d\d)?[\W_]*\Z")
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t)?")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_NEGATIONS = frozenset(["not", "no", "cannot", "don't", "can't", "without", "neither", "non"])
_LEAST_WITHIN_A_WORD = 3


def is_cross_review(title: str) -> bool:
    """Whether a section of this title holds cross-reviews."""
    return _TITLE.search(title) is not None or _PLAIN_TITLE.fullmatch(title.strip()) is not None


def named_in_heading(part: Part) -> Text | None:
    """The reviewer that a heading names: ``Cross-Review (DRL)``, ``DRL Cross-Review``, ``1. DRL``.

    A verdict and a date beside the name are left out.
    """
    heading = part.heading
    if heading is None:
        return None
    raw = part.source.raw(heading.first, heading.last)
    title = _TITLE.search(raw)
    start, end = 0, len(raw)
    if title:
        behind = len(_TAIL.sub("", raw[title.end() :]).strip())
        start, end = (title.end(), end) if behind else (0, title.start())
    brackets = _IN_BRACKETS.search(raw, start, end) if title else None
    if brackets:
        start, end = brackets.span(1)
    verdict = opinion_span(raw, start, end, part.source.vocabulary.opinions)
    end = verdict[0] if verdict else end
    start = min(start + len(_LEAD.match(raw[start:end])[0]), end)  # type: ignore[index] # it matches anything
    end = start + len(_TAIL.sub("", raw[start:end]))
    first = heading.first + len(raw[:start].encode())
    text = part.source.text(first, first + len(raw[start:end].encode()))
    return text if text.raw else None


def reviewer_word(name: str, vocabulary: Vocabulary) -> str | None:
    """The word for a reviewer: ``DRL Specialist`` is ``drl``; None for one whom the vocabulary does not know.

    Of several that are named, the first. A spelling of two letters must be a word of its own.
    """
    whole = squeeze(name)
    known = spelled(vocabulary.known_agents).spellings
    within = [(spelling, word) for spelling, word in known if spelling in whole]
    if not within:
        return None
    tokens = [squeeze(token) for token in _BETWEEN_WORDS.split(name)]
    places = ((_place(spelling, tokens, whole), word) for spelling, word in within)
    found = [(place, word) for place, word in places if place is not None]
    return min(found)[1] if found else None


def _place(spelling: str, tokens: list[str], whole: str) -> int | None:
    """Where a spelling that is within a name stands, as an offset into it without spaces."""
    if spelling in tokens:
        return len("".join(tokens[: tokens.index(spelling)]))
    return whole.find(spelling) if len(spelling) >= _LEAST_WITHIN_A_WORD else None


def known_first(vocabulary: Vocabulary, *names: Text | None) -> Text | None:
    """Of several texts that may name the reviewer, the first whom the register knows, else the first."""
    given = [text for text in names if text and text.raw]
    for text in given:
        if reviewer_word(plain(text.raw), vocabulary):
            return text
    return given[0] if given else None


def opinion_of(verdict: str, opinions: Words) -> Opinion | None:
    """The opinion that a verdict states: the first of its words that is one."""
    found = opinion_span(verdict, 0, len(verdict), opinions)
    word = word_for(verdict[slice(*found)], opinions) if found else None
    return Opinion(word) if word else None


def opinion_span(text: str, start: int, end: int, opinions: Words) -> tuple[int, int] | None:
    """Where in ``text[start:end]`` the first word stands that is an opinion and is not negated."""
    before = ""
    for match in _WORD.finditer(text, start, end):
        if before not in _NEGATIONS and word_for(match[0], opinions):
            return match.span()
        before = match[0].lower().replace("\u2019", "'")
    return None
