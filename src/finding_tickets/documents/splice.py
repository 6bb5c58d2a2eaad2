"""An edit as the bytes it replaces; every other byte of the file stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """The bytes ``[start, end)`` of a file are to become ``new``; where both are equal, it is inserted."""

    start: int
    end: int
    new: bytes


def spliced(data: bytes, splices: Sequence[Splice]) -> bytes:
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
