"""Find the exact law by which a metric grows over a sweep, or say that there is none.

A law is a sum of one to three terms (``terms.py``) with rational coefficients, or the larger of two such
sums. It is accepted only where the sweep determines it: there are at least two points more than it has
coefficients (three for a law with steps or of three terms), each point is predicted exactly by a fit to the
others, and what it rests on takes at least three values. Two values prove no slope; a variable that is 0 or 1
all over the sweep has no other. Of several laws the one with the shortest description counts; where different
laws of that length fit, all of them are rivals and none is a law.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

from finding_tickets.claims.language import evaluate, parse_expression, variables
from finding_tickets.claims.metrics import ENDINGS, METRICS
from finding_tickets.claims.terms import (
    Column,
    Sum,
    Term,
    determined_without_any,
    directions,
    solve,
    spanning,
    terms,
)

SPARE_POINTS = 2
SPARE_POINTS_OF_COMPLEX = 3
FEWEST_VALUES = 3
MOST_RIVALS = 3
# The shortest description that a sum of so many terms can have.
SHORTEST_SUM = {1: 1, 2: 3, 3: 5}
LONGEST_TERM_IN_MAX = 4
# What writing ``max`` adds to the length of a description.
MAX_LENGTH = 2
VARIABLE_LENGTH = 2
_LAWS_KEPT, _SWEEPS_KEPT = 256, 16
"""Enough for one verification, whose metrics and lines often have the same values at the same points."""

Point = tuple[tuple[str, int], ...]
Place = tuple[str, int, str, str]
"""File, line and function of a line of code, and the metric that it made count."""


class CountedRun(NamedTuple):
    """A run at a point: what it counted, where, and the exception that ended it, if one did."""

    at: Mapping[str, int]
    metrics: Mapping[str, int]
    sites: Mapping[Place, int]
    error: str | None


@dataclass(frozen=True)
class Fit:
    """The exact law of a metric, or else what is known of its growth: rival laws, or its range."""

    law: str | None
    growth: str | None

    def __str__(self) -> str:
        """The law, or what stands in for it."""
        return self.law or self.growth or "no law"


def fit_metrics(runs: Iterable[CountedRun]) -> dict[str, Fit]:
    """A fit for each metric over the runs that ended without an error, or over all for how they ended."""
    every = list(runs)
    fits = {}
    for metric in METRICS:
        is_ending = metric in ENDINGS
        having = [run for run in every if metric in run.metrics and (is_ending or run.error is None)]
        if having:
            values = [run.metrics[metric] for run in having]
            sweep = [run.at for run in every]
            fits[metric] = fit([run.at for run in having], values, sweep, is_ending=is_ending)
    return fits


def fit_sites(runs: Iterable[CountedRun]) -> dict[Place, Fit]:
    """A fit for each line over the runs that ended without an error; a line counts 0 where it is absent."""
    every = list(runs)
    # What was counted up to an exception would bend the law of the whole.
    done = [run for run in every if run.error is None]
    points, sweep = [run.at for run in done], [run.at for run in every]
    places = sorted({place for run in done for place in run.sites})
    return {place: fit(points, [run.sites.get(place, 0) for run in done], sweep) for place in places}


def fit(
    points: Sequence[Mapping[str, int]],
    values: Sequence[int],
    sweep: Sequence[Mapping[str, int]] | None = None,
    *,
    is_ending: bool = False,
) -> Fit:
    """The law of a metric with ``values`` at ``points`` of a sweep, or else its rivals or its range.

    A metric of how a run ended is 0 or 1: what could be anything else is no law of it.
    """
    laws = identify(points, values, sweep)
    # A law that is no yes or no for sizes between those of the sweep is a coincidence.
    if is_ending:
        every, possible = sweep or points, []
        for law in laws:
            expression = parse_expression(law)
            names = {variable.name for variable in variables(expression)}
            extremes = [{min(at[name] for at in every), max(at[name] for at in every)} for name in names]
            corners = (dict(zip(names, corner, strict=True)) for corner in product(*extremes))
            if all(evaluate(expression, at) in {0, 1} for at in corners):
                possible.append(law)
        laws = tuple(possible)
    if len(laws) == 1:
        return Fit(laws[0], None)
    return Fit(None, " or ".join(laws) or f"no law, {span(values)}")


def span(values: Sequence[int]) -> str:
    """The smallest and the largest value: ``0..33``, or ``7`` where they are equal."""
    return f"{min(values)}..{max(values)}" if min(values) < max(values) else str(values[0])


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
    # Two branches fit much by chance, so that they are tried only where no sum fits.
    return _shortest(list(_maxima(points, values, flags)))


@lru_cache(maxsize=_LAWS_KEPT)
def _sum_laws(points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> tuple[str, ...]:
    """The shortest sums that fit, if the sweep determines all of them."""
    if len(set(values)) <= 1:
        return (str(values[0]),) if len(values) > SPARE_POINTS else ()
    known = _directions(points)
    columns = list(known)
    found: list[Sum] = []
    for size, shortest in SHORTEST_SUM.items():
        # A longer sum cannot be the shortest law any more.
        if found and min(law.length for law in found) <= shortest:
            break
        for hit in spanning(columns, values, size):
            for chosen in product(*(known[columns[i]] for i in hit)):
                coefficients = solve([term.column for term in chosen], values)
                if coefficients and (law := Sum(chosen, coefficients)).is_plausible:
                    found.append(law)
    length = min((law.length for law in found), default=0)
    found = [law for law in found if law.length == length]
    if not all(_is_determined(law, points, values, flags) for law in found):
        return ()
    return _shortest([(law.length, str(law)) for law in found])


@lru_cache(maxsize=_SWEEPS_KEPT)
def _directions(points: tuple[Point, ...]) -> dict[Column, list[Term]]:
    return directions(terms([dict(point) for point in points]))


def _shortest(laws: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    shortest = min((length for length, _ in laws), default=0)
    # Where many laws fit, the sweep says nothing, and a list of them helps nobody.
    rivals = tuple(dict.fromkeys(text for length, text in laws if length == shortest))
    return rivals if len(rivals) <= MOST_RIVALS else ()


def _is_determined(law: Sum, points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> bool:
    """Whether a sweep has enough points for a law, and enough values to prove each slope of it."""
    columns = [term.column for term in law.terms]
    # Values of a column that is flat but for one step are easily explained by chance.
    flat = any(term.is_step or (term.variables and len(set(term.column)) == 2) for term in law.terms)
    is_complex = len(columns) >= max(SHORTEST_SUM) or (flat and (len(columns) > 1 or law.terms[0].is_step))
    spare = SPARE_POINTS_OF_COMPLEX if is_complex else SPARE_POINTS
    if len(values) < len(columns) + spare:
        return False
    names = {name for term in law.terms for name in term.variables} - flags
    taken = [{dict(point)[name] for point in points} for name in names]
    taken += [set(term.column) for term in law.terms if term.is_step]
    return all(len(each) >= FEWEST_VALUES for each in taken) and determined_without_any(
        columns, values, range(len(values))
    )


def _maxima(points: tuple[Point, ...], values: Column, flags: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Every ``max`` of two sums that is exact at all points, with the length of its description.

    Such a peak is set by one of two phases, depending on the sizes. A branch nowhere exceeds the metric, and
    is the only law of the points that it touches alone.
    """
    candidates = [
        term for group in _directions(points).values() for term in group if term.length <= LONGEST_TERM_IN_MAX
    ]
    branches = []
    for law in dict.fromkeys(_lower_bounds(candidates, values)):
        parts = list(zip(law.terms, law.coefficients, strict=True))
        touched = [
            i
            for i, value in enumerate(values)
            if sum(factor * term.column[i] for term, factor in parts) == value
        ]
        if determined_without_any([term.column for term in law.terms], values, touched):
            branches.append((law, frozenset(touched)))
    for (first, left), (second, right) in combinations(branches, 2):
        # Every point must be explained by one of the branches.
        if len(left | right) < len(values):
            continue
        for law, alone in ((first, left - right), (second, right - left)):
            own = sorted(alone)
            if len(own) <= SPARE_POINTS or (str(law),) != _sum_laws(
                tuple(points[i] for i in own), tuple(values[i] for i in own), flags
            ):
                break
        else:
            yield first.length + second.length + MAX_LENGTH, f"max({first}, {second})"


def _lower_bounds(candidates: Sequence[Term], values: Column) -> Iterator[Sum]:
    """One term, a term and a constant, or two variables, with whole positive coefficients.

    Those of two terms equal the metric at two points at least.
    """
    for term in candidates:
        slope = min((v // c for c, v in zip(term.column, values, strict=True) if c), default=0)
        if slope > 0:
            yield Sum((term,), (Fraction(slope),))
    for first, second in combinations(candidates, 2):
        if not (first.is_constant or first.length == second.length == VARIABLE_LENGTH):
            continue
        rows = list(zip(first.column, second.column, values, strict=True))
        # Two points fix the coefficients; of all pairs of points, those are kept that exceed no value.
        found = set()
        for (x1, y1, v1), (x2, y2, v2) in combinations(rows, 2):
            if not (determinant := x1 * y2 - x2 * y1):
                continue
            a, a_rest = divmod(v1 * y2 - v2 * y1, determinant)
            b, b_rest = divmod(x1 * v2 - x2 * v1, determinant)
            if a > 0 and b > 0 and not a_rest and not b_rest:
                found.add((a, b))
        for a, b in found:
            if all(a * x + b * y <= v for x, y, v in rows):
                yield Sum((first, second), (Fraction(a), Fraction(b)))
