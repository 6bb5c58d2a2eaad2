"""An edit as the bytes it replaces, and the lines around them, whose ends may be of all three kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Splice:
    """The bytes ``[start, end)`` of a file are to become ``new``; where both are equal, it is inserted."""

    start: int
    end: int
    new: bytes


Splices = Sequence[Splice]


def spliced(data: bytes, splices: Splices) -> bytes:
    """``data`` after all of ``splices``, whose offsets all count in ``data``, in any order.

    What is inserted at one place stands in the order of ``splices``.

    Raises:
        ValueError: Two of them overlap, or one reaches beyond the data.
    """
    pieces, at = [], 0
    for splice in sorted(splices, key=lambda each: (each.start, each.end)):
        if not at <= splice.start <= splice.end <= len(data):
            raise ValueError(f"{splice} overlaps another edit or the end of {len(data)} bytes")
        pieces += [data[at : splice.start], splice.new]
        at = splice.end
    return b"".join([*pieces, data[at:]])


class LineOfFile(NamedTuple):
    """The line ``[start, end)`` of a file; with its line end, if it has one, it is ``[start, after)``."""

    start: int
    end: int
    after: int


def line_at(data: bytes, offset: int) -> LineOfFile:
    """The line that the byte at ``offset`` is on."""
    start = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    match = _END.search(data, offset)
    return LineOfFile(start, *match.span()) if match else LineOfFile(start, len(data), len(data))


def line_end(data: bytes, offset: int) -> bytes:
    """The line end that a line added at ``offset`` is to have: that of the line there or before it."""
    line = line_at(data, offset)
    if line.after == line.end and line.start:
        line = line_at(data, line.start - (2 if data[: line.start].endswith(b"\r\n") else 1))
    return data[line.end : line.after] or b"\n"


def lines_below(data: bytes, line: LineOfFile, *texts: bytes) -> Splice:
    """Add lines below a line."""
    end = line_end(data, line.start)
    added = end.join(texts)
    # The last line of a file may have no end yet; then the last one that is added gets none.
    return Splice(line.after, line.after, end + added if line.after == line.end else added + end)
