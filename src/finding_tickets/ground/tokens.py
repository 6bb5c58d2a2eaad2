r"""Reading the text of a small language from left to right, token by token.

A pattern has a named group for each kind of token, and begins with ``\s*`` where white space only separates
tokens. A language whose words depend on what stands before them has several patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

END, UNKNOWN = "end", "unknown"
# Stands for the sign on a command line, where a word that begins with that would be an option.
MINUS = "\N{MINUS SIGN}"
DEEPEST_NESTING = 40
"""Brackets within brackets that a parser follows: Python's own stack has to hold them."""


class Token(NamedTuple):
    """A piece of a text; ``position`` counts characters from 0.

    ``kind`` is the name of a pattern's group, ``END`` after the last token, or ``UNKNOWN`` for a character
    that begins no token of the pattern.
    """

    kind: str
    text: str
    position: int


@dataclass
class Tokens:
    """A text and the place ``at`` up to which it was read; ``pattern`` is used where no other is given."""

    text: str
    pattern: re.Pattern[str]
    at: int = 0

    def peek(self, pattern: re.Pattern[str] | None = None) -> Token:
        """Return the next token without taking it."""
        match = (pattern or self.pattern).match(self.text, self.at)
        if match and match.lastgroup:
            kind = match.lastgroup
            return Token(kind, match[kind], match.start(kind))
        rest = self.text[self.at :].lstrip()
        return Token(UNKNOWN if rest else END, rest[:1], len(self.text) - len(rest))

    def take(self, pattern: re.Pattern[str] | None = None) -> Token:
        """Take the next token; the end and unknown characters are not passed."""
        token = self.peek(pattern)
        if token.kind not in {END, UNKNOWN}:
            self.at = token.position + len(token.text)
        return token

    def accept(self, *texts: str, pattern: re.Pattern[str] | None = None) -> Token | None:
        """Take the next token if it is one of these texts, else None."""
        token = self.peek(pattern)
        if token.kind in {END, UNKNOWN} or token.text not in texts:
            return None
        return self.take(pattern)
