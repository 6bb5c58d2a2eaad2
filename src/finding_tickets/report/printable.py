"""Text of tickets for people's eyes: it can be read on a terminal, and do nothing else there."""

from __future__ import annotations

from unicodedata import category

KEPT = frozenset("\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters, surrogates, line separators: what steers a terminal or reorders text."""


def printable(text: str) -> str:
    """``text`` with a ``?`` for each character that does not show, but for tabs and ends of lines."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def _shown(char: str) -> str:
    return "?" if category(char) in UNSEEN and char not in KEPT else char
