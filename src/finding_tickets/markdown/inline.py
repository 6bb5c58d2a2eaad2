"""Text inside a block: what remains of it without emphasis, and the code spans it contains."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"(`+)(.+?)\1|\*\*|\\([|*_`\[\]])", re.DOTALL)
_CODE = re.compile(rb"(`+)(.+?)\1", re.DOTALL)
_SPACES = re.compile(r"\s+")


def plain(raw: str) -> str:
    """``raw`` on one line, without bold marks, backticks and escapes: ``**Agent**`` is ``Agent``."""
    return _SPACES.sub(" ", _MARKUP.sub(lambda match: match[2] or match[3] or "", raw)).strip()


def code_spans(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The content of each code span within ``data[start:end]``, as offsets into ``data``."""
    return [match.span(2) for match in _CODE.finditer(data, start, end)]
