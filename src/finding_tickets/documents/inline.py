"""Text inside a block: what remains of it without markup, and the code spans it contains."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TICKS = re.compile(rb"`+")
_ONE_SPAN = 2
_MARKUP = re.compile(r"\*\*|\\([|*_`\[\]])")
_NOT_A_WORD = re.compile(r"[^\w]+")


def plain(raw: str) -> str:
    """``raw`` on one line, without bold marks, backticks and escapes: ``**Agent**`` is ``Agent``."""
    ticks = raw.count("`")
    if not ticks and "\\" not in raw:
        return " ".join(raw.replace("**", "").split())
    if not ticks:
        return _on_one_line(_without_marks(raw))
    if ticks == _ONE_SPAN and "``" not in raw:
        before, code, after = raw.split("`")
        # A backslash takes the backtick behind it along, though it does not keep it from opening the span.
        return _on_one_line(f"{_without_marks(before + '`')}{code}{_without_marks(after)}")
    data = raw.encode()
    pieces, at = [], 0
    for start, end in code_spans(data, 0, len(data)):
        before = data[at:start].decode()
        pieces += [_without_marks(before), data[start:end].decode()]
        at = end
    pieces.append(_without_marks(data[at:].decode()))
    return _on_one_line("".join(pieces))


def words_of(title: str) -> str:
    """A title in lower case with single spaces between its words."""
    return _NOT_A_WORD.sub(" ", title.lower()).strip()


def code_spans(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The content of each code span within ``data[start:end]``, as offsets into ``data``."""
    if data.find(b"`", start, end) < 0:
        return []
    runs = [match.span() for match in _TICKS.finditer(data, start, end)]
    return [(runs[first][1], runs[last][0]) for first, last in _pairs([stop - begin for begin, stop in runs])]


def _pairs(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """A run of backticks opens a code span that the next run of the same length closes."""
    following: dict[int, int] = {}
    closing = [0] * len(lengths)
    for index in reversed(range(len(lengths))):
        closing[index] = following.get(lengths[index], 0)
        following[lengths[index]] = index
    index = 0
    while index < len(lengths):
        if closing[index]:
            yield index, closing[index]
        index = max(index, closing[index]) + 1


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _without_marks(text: str) -> str:
    bare = _MARKUP.sub(lambda match: match[1] or "", text) if "\\" in text else text.replace("**", "")
    return bare.replace("`", "")
