"""Which outcome a phrase means: ``won't fix (by design)``, ``Already Fixed``, ``Acceptable as-is``."""

from __future__ import annotations

import re

from finding_tickets.model.vocabulary import Outcome, Words, word_for

_DONE = r"(?:fixed|resolved|implemented|addressed|applied|closed)"
# The first that matches counts: "won't fix (duplicate of ...)" is a won't-fix, "not fixed" is no outcome.
_PHRASES: tuple[tuple[str, Outcome | None], ...] = (
    (rf"\bnot (?:yet )?(?:been )?{_DONE}\b|\bpartial", None),
    (rf"\b(?:to|will|should|must|can|could|may|might) be {_DONE}\b", None),
    (r"^\W*(?:recommend|suggest|propos|consider)", None),
    (r"^\W*(?:already )?(?:fixed|implemented)\b", Outcome.FIXED),
    (r"\bwo(?:n['\u2019]?t|nt|uld not)[ -]?fix|\bdeclined\b", Outcome.WONT_FIX),
    (r"\bnot[ -]a[ -](?:bug|defect)\b|\bworking as (?:designed|intended)\b", Outcome.NOT_A_BUG),
    (r"^\W*(?:closed? )?(?:as )?invalid\b|\b(?:is|as) invalid\b|\bfalse positive\b", Outcome.NOT_A_BUG),
    (r"\bby design\b|\b(?:cannot|could not) (?:be )?reproduced?\b", Outcome.NOT_A_BUG),
    (
        r"^\W*(?:closed? )?(?:as )?(?:an? )?duplicate\b|\bduplicate of\b|\bas (?:an? )?duplicate\b",
        Outcome.DUPLICATE,
    ),
    (
        r"\bacceptable\b|\bas[ -]is\b|\bno (?:action|changes?|fix) (?:is )?(?:needed|required)\b",
        Outcome.ACCEPTABLE,
    ),
    (r"\bfixed\b|\bresolved\b|\bimplemented\b|\baddressed\b", Outcome.FIXED),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), outcome) for pattern, outcome in _PHRASES)
_DONE_REMARK = re.compile(
    r"(?:^|[(\[:\u2013\u2014\u2705\u2714]\ufe0f?|\s-)\s*(?:\u2705\s*|already )?"
    r"(?P<word>implemented|applied|fixed|done|completed?)\b(?! (?:plan|as|by|in)\b)",
    re.IGNORECASE,
)


def outcome_of(phrase: str, outcomes: Words) -> Outcome | None:
    """The outcome that ``phrase`` means, by the register's own words first; None where it states none."""
    word = word_for(phrase, outcomes)
    if word is not None:
        return Outcome(word)
    return next((outcome for pattern, outcome in _COMPILED if pattern.search(phrase)), None)


def done_remark(title: str) -> tuple[int, int] | None:
    """Where a title says that what it proposes was done: ``Recommended Fix (IMPLEMENTED)``."""
    match = _DONE_REMARK.search(title)
    return match.span("word") if match else None
