"""Foreign text as Markdown that says nothing but the text: no markup, no HTML, no beginning of a block."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKUP = frozenset("\\*_[]<>&|~$#!@{}^")
_BLOCK = re.compile(r"[-+=:]+|\d+[.)]")
_COMPARED = re.compile(r"[<>]=?|->|=>|&")
_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"(?P<before>[\"']*)(?P<word>.*?)(?P<after>[\"'.,;:?]*)", re.DOTALL)
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
CUT = "\N{HORIZONTAL ELLIPSIS}"


def words(text: str, longest: int) -> str:
    """``text`` on one line, cut behind ``longest`` characters; a word with markup in it becomes code.

    What stands between backticks is code already; no backtick is left without another one.
    """
    # Of a text of megabytes, what comes much later is not even looked at.
    line = " ".join(text[: longest * 2].split())
    kept = "".join(char if char.isprintable() else UNPRINTABLE for char in line[:longest]).rstrip()
    return " ".join(_literal(kept)) + (CUT if len(kept) < len(line) else "")


def paragraphs(text: str, longest: int) -> str:
    """``text`` with its lines, cut behind ``longest`` characters; an empty line begins a new paragraph."""
    lines = [words(line, longest) for line in _LINE_END.split(text[:longest])]
    shown = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return shown + (CUT if len(text) > longest else "")


def _literal(line: str) -> Iterator[str]:
    """The words of a line, each as it is or in backticks, and its code."""
    first = True
    for at, piece in enumerate(_CODE.split(line)):
        parts = [piece.strip()] if at % 2 else piece.replace("`", "").split()
        for word in filter(None, parts):
            yield f"`{word}`" if at % 2 else _escaped(word, first=first)
            first = False


def _escaped(word: str, *, first: bool) -> str:
    """Only the first word of a line can begin a block; behind it, a sign that stands alone is no markup."""
    if not first and _COMPARED.fullmatch(word):
        return word
    if _MARKUP.isdisjoint(word) and not (first and _BLOCK.fullmatch(word)):
        return word
    parts = _WORD.fullmatch(word)
    inner = parts["word"] if parts else ""
    return f"{parts['before']}`{inner}`{parts['after']}" if parts and inner else f"`{word}`"
