"""Which word of a vocabulary a phrase states: ``closed (2024-12-28)``, ``P1 → P3``, ``✅ Fixed``."""

from __future__ import annotations

import re

from finding_tickets.model.vocabulary import Words, word_for

_ARROW = re.compile(r"\u2192|\u21d2|[-=]+>")
_STRUCK = re.compile(r"~~.*?~~")
_TOKEN = re.compile(r"[\w'\u2019]+")
_LONGEST = 4


def word_in(phrase: str, words: Words) -> str | None:
    """The word that ``phrase`` is or begins with; where it names a change, by an arrow, of its last state.

    What is struck through does not count.
    """
    last = _ARROW.split(_STRUCK.sub(" ", phrase))[-1]
    return word_for(last, words) or _leading(last, words)


def only_word_in(phrase: str, words: Words) -> str | None:
    """The word that ``phrase`` states, or else the only one that it mentions: ``Medium (P2)``."""
    stated = word_in(phrase, words)
    if stated:
        return stated
    mentioned = {word_for(token, words) for token in _TOKEN.findall(phrase)} - {None}
    return mentioned.pop() if len(mentioned) == 1 else None


def _leading(phrase: str, words: Words) -> str | None:
    tokens = _TOKEN.findall(phrase)[:_LONGEST]
    found = (word_for(" ".join(tokens[:length]), words) for length in range(len(tokens), 0, -1))
    return next((word for word in found if word), None)
