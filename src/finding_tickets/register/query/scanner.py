"""Going through the characters of a query from left to right."""

from __future__ import annotations

import re

from finding_tickets.register.query.tree import QueryError

KEY = re.compile(r"([A-Za-z][A-Za-z_-]*):")
WORD = re.compile(r'[^\s()"]+')
VALUE = re.compile(r'[^\s()",=]+')
RELATION = re.compile(r">=|<=|>|<|=")
OPERATOR = re.compile(r'(?:AND|OR|NOT)(?![^\s()"])')
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\])')


class Scanner:
    """A query and the place up to which it was read; ``next`` is the character there, empty at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.skip()

    @property
    def next(self) -> str:
        """The character that comes next, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        """Pass over white space."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self, pattern: re.Pattern[str]) -> str:
        """What comes next if it is of this form, else nothing."""
        match = pattern.match(self.text, self.at)
        return match[0] if match else ""

    def take(self, expected: str) -> bool:
        """Pass over ``expected`` if it comes next, and say whether it did."""
        found = self.text.startswith(expected, self.at)
        self.at += len(expected) if found else 0
        return found

    def word(self, pattern: re.Pattern[str]) -> str:
        """The word that comes next, in quotation marks or of the form of ``pattern``; nothing for no word."""
        if self.next != '"':
            word = self.peek(pattern)
            self.at += len(word)
            return word
        quoted = _QUOTED.match(self.text, self.at)
        if quoted is None:
            raise self.wrong("a quotation mark without its partner")
        self.at = quoted.end()
        return _ESCAPE.sub(r"\1", quoted[1])

    def wrong(self, message: str, at: int | None = None, hint: str | None = None) -> QueryError:
        """The error that something is wrong here, or at another place."""
        return QueryError(message, self.text, self.at if at is None else at, hint)
