"""Who reviewed, and which opinion a verdict states, in the words of the register."""

from __future__ import annotations

import re

from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.model.record import Text
from finding_tickets.model.vocabulary import Opinion, Vocabulary, Words, squeeze, word_for

_TITLE = re.compile(r"cross\W*reviews?\b\W*", re.IGNORECASE)


def is_cross_review(title: str) -> bool:
    """Whether a section of this title holds cross-reviews."""
    return _TITLE.match(title) is not None


def named_in_heading(part: Part) -> Text | None:
    """The reviewer that a heading names: ``Cross-Review (DRL)``, ``Cross-Review: DRL`` or ``DRL``."""
    heading = part.heading
    if heading is None:
        return None
    match = _TITLE.match(part.source.raw(heading.first, heading.last))
    start = heading.first + (len(match[0].encode()) if match else 0)
    end = heading.last - part.source.data[start : heading.last].endswith(b")")
    text = part.source.text(start, end)
    return text if text.raw else None


def reviewer_word(name: str, vocabulary: Vocabulary) -> str | None:
    """The register's word for a reviewer: ``DRL Specialist`` is ``drl``; None for an unknown one."""
    wanted = squeeze(name)
    for word, spellings in vocabulary.agents.items():
        if any(squeeze(spelling) in wanted for spelling in (word, *spellings)):
            return word
    return None


def known_first(vocabulary: Vocabulary, *names: Text | None) -> Text | None:
    """Of several texts that may name the reviewer, the first whom the register knows, else the first."""
    given = [text for text in names if text and text.raw]
    known = (text for text in given if reviewer_word(plain(text.raw), vocabulary))
    return next(known, given[0] if given else None)


def opinion_of(verdict: str, opinions: Words) -> Opinion | None:
    """The opinion that a verdict states: the first of its words that is one."""
    found = (word_for(word, opinions) for word in plain(verdict).split())
    return next((Opinion(word) for word in found if word), None)
