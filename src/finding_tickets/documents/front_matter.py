"""YAML front matter: where it ends, and its keys with their values, on bytes and without a YAML parser.

Front matter is what stands between a line of ``---`` at the very beginning of a file and the next such line
(or ``...``). Only its upper level is read: ``key: value``, with lists as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_END = rb"(?:\r\n|\r|\n)"
_FRONT_MATTER = re.compile(
    rb"---[ \t]*"
    + _END
    + rb"(?P<text>[\w\"'][^\r\n:]*:(?:[ \t][^\r\n]*)?"
    + _END
    + rb"(?:[^\r\n]*"
    + _END
    + rb")*?)"
    rb"(?:---|\.\.\.)[ \t]*(?:" + _END + rb"|\Z)"
)
_KEY = re.compile(rb"(?<![^\r\n])(?P<quote>[\"']?)(?P<key>\w[^\r\n:]*?)(?P=quote)[ \t]*:(?=[ \t\r\n]|\Z)")
_COMMENT = re.compile(rb"(?:^|[ \t])#[^\r\n]*\Z")


def front_matter(data: bytes) -> tuple[int, int, int]:
    """Where the front matter's text begins and ends, and where the Markdown below it begins.

    Without front matter all three are where the Markdown begins: behind the byte order mark, if there is one.
    """
    start = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    match = _FRONT_MATTER.match(data, start)
    return (match.start("text"), match.end("text"), match.end()) if match else (start, start, start)


def pairs(data: bytes, start: int, end: int) -> Iterator[tuple[str, int, int, int]]:
    """Each key of ``data[start:end]`` with the offsets of its line, and of its value without quotes."""
    matches = list(_KEY.finditer(data, start, end))
    ends = [*(match.start() for match in matches), end][1:]
    for match, until in zip(matches, ends, strict=True):
        first, last = _unquoted(data, match.end(), until)
        yield match["key"].decode(), match.start(), first, last


def _unquoted(data: bytes, start: int, end: int) -> tuple[int, int]:
    piece = data[start:end].rstrip()
    if not re.search(rb"[\r\n]", piece.strip()) and not piece.lstrip().startswith((b'"', b"'")):
        piece = _COMMENT.sub(b"", piece).rstrip()
    first, last = start + len(piece) - len(piece.lstrip()), start + len(piece)
    text = data[first:last]
    if len(text) > 1 and text[:1] == text[-1:] and text[:1] in (b'"', b"'"):
        return first + 1, last - 1
    return first, last
