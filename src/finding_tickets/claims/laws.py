"""Find the exact law by which a metric grows over a sweep, or say that there is none.

A law is a sum of one to three terms (``terms.py``) with rational coefficients, or the larger of two such
sums. It is accepted only where the sweep determines it: there are at least two points more than it has
coefficients (three for a law with steps or of three terms), each point is predicted exactly by a fit to the
others, and what it rests on takes at least three values. Two values prove no slope; a variable that is 0 or 1
all over the sweep has no other. Of several laws the one with the shortest description counts; where different
laws of that length fit, all of them are returned as rivals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from finding_tickets.claims.linear import determined_without_any, solve, spanning
from finding_tickets.claims.maxima import larger_of_two
from finding_tickets.claims.terms import Column, Direction, Sum, directions, terms

SPARE_POINTS = 2
SPARE_POINTS_OF_COMPLEX = 3
FEWEST_VALUES = 3
MOST_RIVALS = 3
LONGEST_TERM_IN_MAX = 4
SHORTEST_SUM = {1: 1, 2: 3, 3: 5}
"""The shortest description that a sum of so many terms can have."""
_LAWS_KEPT, _SWEEPS_KEPT = 256, 16
"""Enough for one verification, whose metrics and lines often have the same values at the same points."""

Point = tuple[tuple[str, int], ...]


def identify(
    points: Sequence[Mapping[str, int]],
    values: Sequence[int],
    sweep: Sequence[Mapping[str, int]] | None = None,
) -> tuple[str, ...]:
    """The law of a metric in the claims' language: one text, several rivals, or nothing.

    ``values`` are the metric at ``points``, which share their variables and may be a part of ``sweep``.
    Repeated points count once; where they disagree there is no law.
    """
    distinct = dict(zip((tuple(point.items()) for point in points), values, strict=True))
    if any(distinct[tuple(point.items())] != value for point, value in zip(points, values, strict=True)):
        return ()
    every = points if sweep is None else sweep
    flags = frozenset(name for name in points[0] if {point[name] for point in every} == {0, 1})
    return _identify(tuple(distinct), tuple(distinct.values()), flags)


@lru_cache(maxsize=_LAWS_KEPT)
def _identify(points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> tuple[str, ...]:
    if found := _sum_laws(points, values, flags):
        return found
    return _shortest(list(_maxima(points, values, flags)))


@lru_cache(maxsize=_LAWS_KEPT)
def _sum_laws(points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> tuple[str, ...]:
    if len(set(values)) <= 1:
        return (str(values[0]),) if len(values) > SPARE_POINTS else ()
    found = _shortest_sums(_directions(points), values)
    if not all(_determined(law, values) and _rests_on_enough(law, points, flags) for law in found):
        return ()
    return _shortest([(law.length, str(law)) for law in found])


@lru_cache(maxsize=_SWEEPS_KEPT)
def _directions(points: tuple[Point, ...]) -> tuple[Direction, ...]:
    return tuple(directions(terms([dict(point) for point in points])))


def _shortest(laws: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    shortest = min((length for length, _ in laws), default=0)
    rivals = tuple(dict.fromkeys(text for length, text in laws if length == shortest))
    return rivals if len(rivals) <= MOST_RIVALS else ()


def _shortest_sums(known: Sequence[Direction], values: Column) -> list[Sum]:
    """The shortest sums that fit, whether or not the sweep determines them."""
    found: list[Sum] = []
    for size, shortest in SHORTEST_SUM.items():
        if found and min(law.length for law in found) <= shortest:
            break
        found += _sums(known, values, size)
    length = min((law.length for law in found), default=0)
    return [law for law in found if law.length == length]


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
    # Values of a column that is flat but for one step are easily explained by chance.
    flat = any(term.is_step or (term.variables and len(set(term.column)) == 2) for term in law.terms)
    is_complex = len(columns) >= max(SHORTEST_SUM) or (flat and (len(columns) > 1 or law.terms[0].is_step))
    spare = SPARE_POINTS_OF_COMPLEX if is_complex else SPARE_POINTS
    return len(points) >= len(columns) + spare and determined_without_any(columns, values, points)


def _rests_on_enough(law: Sum, points: tuple[Point, ...], flags: frozenset[str]) -> bool:
    """Whether every variable and every step of a law takes enough values to prove its slope."""
    names = {name for term in law.terms for name in term.variables} - flags
    taken = [{dict(point)[name] for point in points} for name in names]
    taken += [set(term.column) for term in law.terms if term.is_step]
    return all(len(values) >= FEWEST_VALUES for values in taken)


def _maxima(points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> Iterator[tuple[int, str]]:
    def law_of(own: Sequence[int]) -> tuple[str, ...]:
        if len(own) <= SPARE_POINTS:
            return ()
        return _sum_laws(tuple(points[i] for i in own), tuple(values[i] for i in own), flags)

    known = _directions(points)
    simple = [term for direction in known for term in direction.terms if term.length <= LONGEST_TERM_IN_MAX]
    return larger_of_two(simple, values, law_of)
