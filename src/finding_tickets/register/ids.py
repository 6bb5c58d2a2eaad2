"""What the IDs of all documents of a register say together: their order, and which are given twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from finding_tickets.model.problem import Level, Problem

_NAMED = 3


class Place(NamedTuple):
    """The ID of a document, its file, and the line (from 1) on which the ID stands."""

    id: str
    path: str
    line: int


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers within text by their value, however long: ``B2`` before ``B10``."""
    pieces = re.split(r"([0-9]+)", text.upper())
    return tuple(_value(piece) if at % 2 else (0, piece) for at, piece in enumerate(pieces))


def _value(digits: str) -> tuple[int, str]:
    """A key that sorts numbers: of two without zeros in front the longer one is greater."""
    number = digits.lstrip("0")
    return len(number), number


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text without the zeros in front, as text, for they may have any number of digits."""
    return tuple(re.findall(r"0*([0-9]+)", text))


def duplicates(places: Iterable[Place]) -> Iterator[Problem]:
    """A problem for every ID that another document has too, in any case; it says where else."""
    named: dict[str, list[Place]] = {}
    for place in places:
        named.setdefault(place.id.casefold(), []).append(place)
    for sharing in named.values():
        for place in sharing if len(sharing) > 1 else ():
            yield Problem(
                level=Level.ERROR,
                rule="duplicate-id",
                file=place.path,
                line=place.line,
                message=f"{place.id} is also the ID of {_others(place, sharing)}",
            )


def _others(place: Place, sharing: list[Place]) -> str:
    """Where else an ID stands; of many places the first few, so that the problems do not grow as a square."""
    others = [other for other in sharing[: _NAMED + 1] if other is not place][:_NAMED]
    more = len(sharing) - 1 - len(others)
    shown = ", ".join(f"{other.path}:{other.line}" for other in others)
    return f"{shown} and {more} more" if more else shown
