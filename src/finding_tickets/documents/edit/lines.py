"""Lines of a file whose line ends may be of all three kinds."""

from __future__ import annotations

import re
from typing import NamedTuple

_END = re.compile(rb"\r\n|\r|\n")
_DEFAULT = b"\n"


class Line(NamedTuple):
    """The line ``[start, end)`` of a file; with its line end, if it has one, it is ``[start, after)``."""

    start: int
    end: int
    after: int


def line_at(data: bytes, offset: int) -> Line:
    """The line that the byte at ``offset`` is on."""
    start = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    match = _END.search(data, offset)
    return Line(start, *match.span()) if match else Line(start, len(data), len(data))


def line_end(data: bytes, offset: int) -> bytes:
    """The line end that a line added at ``offset`` is to have: that of the line there or before it."""
    line = line_at(data, offset)
    if line.after == line.end and line.start:
        line = line_at(data, line.start - (2 if data[: line.start].endswith(b"\r\n") else 1))
    return data[line.end : line.after] or _DEFAULT


def added_after(data: bytes, line: Line, *texts: bytes) -> bytes:
    """What to insert at ``line.after`` so that each text becomes a line of its own."""
    end = line_end(data, line.start)
    missing = end if line.after == line.end else b""
    return missing + end.join(texts) + (b"" if missing else end)
