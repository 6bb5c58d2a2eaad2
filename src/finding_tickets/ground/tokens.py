r"""Reading the text of a small language from left to right, token by token.

A pattern has a named group for each kind of token, and begins with ``\s*`` where white space only separates
tokens. A language whose words depend on what stands before them has several patterns.
"""

from __future__ import annotations

import re
from typing import NamedTuple

END, UNKNOWN = "end", "unknown"
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


class Tokens:
    """A text and the place ``at`` up to which it was read; ``pattern`` is used where no other is given."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.text = text
        self.at = 0
        self._pattern = pattern

    def peek(self, pattern: re.Pattern[str] | None = None) -> Token:
        """The token that comes next, which stays the next one."""
        return self._read(pattern)[0]

    def take(self, pattern: re.Pattern[str] | None = None) -> Token:
        """The token that comes next, which is then behind; the end and what is unknown are not passed."""
        token, end = self._read(pattern)
        self.at = end
        return token

    def accept(self, *texts: str, pattern: re.Pattern[str] | None = None) -> Token | None:
        """Take the next token if it is one of these texts, else None."""
        token, end = self._read(pattern)
        if token.kind in {END, UNKNOWN} or token.text not in texts:
            return None
        self.at = end
        return token

    def _read(self, pattern: re.Pattern[str] | None) -> tuple[Token, int]:
        """The next token and the place behind it."""
        match = (pattern or self._pattern).match(self.text, self.at)
        if match and match.lastgroup:
            kind = match.lastgroup
            return Token(kind, match[kind], match.start(kind)), match.end()
        rest = self.text[self.at :].lstrip()
        position = len(self.text) - len(rest)
        return Token(UNKNOWN if rest else END, rest[:1], position), self.at
