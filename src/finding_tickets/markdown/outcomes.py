"""Which outcome a phrase means: ``won't fix (by design)``, ``Already Fixed``, ``Acceptable as-is``."""

from __future__ import annotations

import re

from finding_tickets.model.vocabulary import Outcome, Words, word_for

# The first that matches counts: "won't fix (duplicate of ...)" is a won't-fix, "not fixed" is no outcome.
_PHRASES: tuple[tuple[str, Outcome | None], ...] = (
    (r"\bnot (?:yet )?(?:been )?(?:fixed|resolved)\b|\bpartial", None),
    (r"\b(?:to|will|should|must|can|could) be (?:fixed|resolved)\b", None),
    (r"\bwo(?:n['\u2019]?t|nt|uld not)[ -]?fix", Outcome.WONT_FIX),
    (r"\bnot[ -]a[ -](?:bug|defect)\b|\bworking as (?:designed|intended)\b", Outcome.NOT_A_BUG),
    (r"\binvalid\b|\bfalse positive\b", Outcome.NOT_A_BUG),
    (r"\bduplicate\b", Outcome.DUPLICATE),
    (r"\bacceptable\b|\bas[ -]is\b|\bno action (?:is )?(?:needed|required)\b", Outcome.ACCEPTABLE),
    (r"\bfixed\b|\bresolved\b", Outcome.FIXED),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), outcome) for pattern, outcome in _PHRASES)


def outcome_of(phrase: str, outcomes: Words) -> Outcome | None:
    """The outcome that ``phrase`` means, by the register's own words first; None where it states none."""
    word = word_for(phrase, outcomes)
    if word is not None:
        return Outcome(word)
    return next((outcome for pattern, outcome in _COMPILED if pattern.search(phrase)), None)
