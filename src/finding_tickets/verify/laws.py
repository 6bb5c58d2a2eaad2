"""Find the exact law by which a metric grows over a sweep, or say that there is none.

A law is a sum of one to three terms (``terms.py``) with rational coefficients, or the larger of two such
sums. It is accepted only where the sweep determines it: there are at least two points more than it has
coefficients, and each point is predicted exactly by a fit to the others. Of several laws the one with the
shortest description counts; where different laws of that length fit, all of them are returned as rivals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from finding_tickets.verify.linear import determined_without_any, solve, spanning
from finding_tickets.verify.maxima import larger_of_two
from finding_tickets.verify.terms import Column, Direction, Sum, directions, terms

SPARE_POINTS = 2
MOST_RIVALS = 3
LONGEST_TERM_IN_MAX = 4
SHORTEST_SUM = {1: 1, 2: 3, 3: 5}
"""The shortest description that a sum of so many terms can have."""


def identify(points: Sequence[Mapping[str, int]], values: Sequence[int]) -> tuple[str, ...]:
    """The law of a metric in the claims' language: one text, several rivals, or nothing.

    ``values`` are the metric at ``points``, which share their variables. Repeated points count once; where
    they disagree there is no law.
    """
    distinct = dict(zip((tuple(point.items()) for point in points), values, strict=True))
    if any(distinct[tuple(point.items())] != value for point, value in zip(points, values, strict=True)):
        return ()
    return _identify(tuple(distinct), tuple(distinct.values()))


@lru_cache(maxsize=4096)
def _identify(points: tuple[tuple[tuple[str, int], ...], ...], values: Column) -> tuple[str, ...]:
    if len(set(values)) <= 1:
        return (str(values[0]),) if len(values) > SPARE_POINTS else ()
    known = _directions(points)
    found = _shortest_sums(known, values)
    laws = [(law.length, str(law)) for law in found] or list(_maxima(known, values))
    return _shortest(laws)


@lru_cache(maxsize=64)
def _directions(points: tuple[tuple[tuple[str, int], ...], ...]) -> tuple[Direction, ...]:
    return tuple(directions(terms([dict(point) for point in points])))


def _shortest(laws: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    shortest = min((length for length, _ in laws), default=0)
    rivals = tuple(dict.fromkeys(text for length, text in laws if length == shortest))
    return rivals if len(rivals) <= MOST_RIVALS else ()


def _shortest_sums(known: Sequence[Direction], values: Column) -> list[Sum]:
    """The shortest sums that fit; none where even one of them is not determined by the sweep."""
    found: list[Sum] = []
    for size, shortest in SHORTEST_SUM.items():
        if found and min(law.length for law in found) <= shortest:
            break
        found += _sums(known, values, size)
    length = min((law.length for law in found), default=0)
    rivals = [law for law in found if law.length == length]
    return rivals if all(_determined(law, values) for law in rivals) else []


def _sums(known: Sequence[Direction], values: Column, size: int) -> Iterator[Sum]:
    columns = [direction.column for direction in known]
    for hit in spanning(columns, values, size):
        for chosen in product(*(known[i].terms for i in hit)):
            coefficients = solve([term.column for term in chosen], values)
            if coefficients and (law := Sum(chosen, coefficients)).is_plausible:
                yield law


def _determined(law: Sum, values: Column) -> bool:
    columns = [term.column for term in law.terms]
    points = range(len(values))
    return len(points) >= len(columns) + SPARE_POINTS and determined_without_any(columns, values, points)


def _maxima(known: Sequence[Direction], values: Column) -> Iterator[tuple[int, str]]:
    simple = [term for direction in known for term in direction.terms if term.length <= LONGEST_TERM_IN_MAX]
    return larger_of_two(simple, values)
