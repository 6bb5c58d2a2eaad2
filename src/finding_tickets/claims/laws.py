"""Find the exact law by which a metric grows over a sweep, or say that there is none.

A law is a sum of one to three terms with rational coefficients, or the larger of two such sums. It is
accepted only where the sweep determines it: there are at least two points more than it has coefficients
(three for a law with steps or of three terms), each point is predicted exactly by a fit to the others, and so
is each size of each variable, all points that have it left out. Two sizes prove no slope and three no
quadratic; a variable that is 0 or 1 all over the sweep has no other. Where a law holds but for size 0 or 1 of
a variable, that special case is named. Of several laws the one with the shortest description counts; where
different laws of that length fit, all of them are rivals and none is a law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import gcd, inf
from operator import mul
from typing import Any

from finding_tickets.claims.language import evaluate, parse_expression, variables
from finding_tickets.claims.metrics import DEPENDS_ON_CACHE, ENDINGS, METRICS

SPARE_POINTS, SPARE_POINTS_OF_COMPLEX = 2, 3
FEWEST_VALUES = 3
MOST_RIVALS = 3
MOST_VARIABLES_OF_SPECIAL_CASES = 3
LARGEST_DENOMINATOR = 8
# The shortest description that a sum of so many terms can have.
SHORTEST_SUM = {1: 1, 2: 3, 3: 5}
LONGEST_TERM_IN_MAX = 4
# What writing ``max`` adds to the length of a description.
MAX_LENGTH = 2
VARIABLE_LENGTH = 2
# Sizes ``k`` for which work grows in steps of ``ceil(x/k)``.
CHUNKS = (
    # Tensors that one multi-tensor launch takes, by the number of lists: CUDA 12, then CUDA 13.
    *(30, 36, 48, 64, 110),
    *(210, 252, 336, 448, 770),
    # Blocks that one multi-tensor launch takes: CUDA 12, then CUDA 13.
    *(320, 2240),
    # Inputs of one concatenation (64, 128), tensors of one norm clean-up, elements of one tensor chunk.
    *(128, 400, 65536),
    # An allocator block in bytes, and in elements of two bytes; in elements of four it is 128, of eight 64.
    *(512, 256),
    # Elements at which a reduction takes a workspace; a segment of the allocator in bytes.
    *(131072, 2097152),
)
PRIME = 16381
# Drawn once; four, because a sum has at most three terms.
BASES = (4463, 7457, 11173, 14591)
# In one verification many metrics and lines have the same values at the same points.
_keep_laws = lru_cache(maxsize=256)

Sizes = Mapping[str, int]
Point = tuple[tuple[str, int], ...]
# One value for each point.
Column = tuple[int, ...]
# File, line and function of a line of code, and the metric that it made count.
Place = tuple[str, int, str, str]
SITE = ("file", "line", "function", "what")
# The least and the most that a number can be; None where nobody knows.
Range = tuple[int, int | None]


@dataclass(frozen=True)
class CountedRun:
    """A run at a point: what it counted and where; up to an exception, if one ended it (``error``).

    With ``unknown`` operations no count can be trusted. Metrics with modelled numbers, the costs of
    ``approximate`` operations, have ``ranges``. ``operations`` has the counts of each, if asked for.
    """

    at: Sizes
    metrics: Mapping[str, int]
    sites: Mapping[Place, int]
    error: str | None
    unknown: tuple[str, ...] = ()
    approximate: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)
    operations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def difference(self, again: CountedRun) -> str | None:
        """Describe how the costs of the same work differ in another run, and where; None if they agree."""
        # This run may have more metrics, which were traced.
        for metric, value in again.metrics.items():
            if value != self.metrics.get(metric) and metric != DEPENDS_ON_CACHE:
                places = sorted(
                    self.sites.keys() | again.sites.keys(),
                    key=lambda place: place[3] != metric,
                )
                where = (
                    f"{place[0]}:{place[1]}"
                    for place in places
                    if self.sites.get(place) != again.sites.get(place)
                )
                at = next((f" at {place}" for place in where), "")
                return f"{metric} {self.metrics.get(metric)}, then {value}{at}"
        return None


def join_ranges(
    runs: Sequence[CountedRun], join: Callable[[str, Iterable[int]], int]
) -> dict[str, Range]:
    """Join the ranges of several runs: ``join`` makes one number of a metric from one of each run."""
    joined: dict[str, Range] = {}
    for name in dict.fromkeys(name for run in runs for name in run.ranges):
        bounds = [run.ranges.get(name, (run.metrics[name],) * 2) for run in runs]
        most = [high for _, high in bounds if high is not None]
        joined[name] = (
            join(name, (low for low, _ in bounds)),
            join(name, most) if len(most) == len(bounds) else None,
        )
    return joined


def range_text(ranges: Iterable[Range]) -> str:
    """All that numbers in any of the ranges can be: ``1..3`` or ``1 or more``."""
    lows, highs = zip(*ranges, strict=True)
    return f"{min(lows)} or more" if None in highs else f"{min(lows)}..{max(highs)}"


@dataclass(frozen=True)
class Fit:
    """The exact law of a metric, or else what is known of its growth: rival laws or a range.

    ``usual`` is the law of all points without a special case, which ``growth`` names.
    """

    law: str | None
    growth: str | None
    usual: str | None = None

    def __str__(self) -> str:
        """The law, or what stands in for it."""
        return self.law or self.growth or "no law"


@dataclass(frozen=True, slots=True)
class Term:
    """A term without its coefficient: its text, its length as a description, its value at each point.

    A constant has no variables. A step is a ``ceil``.
    """

    text: str
    length: int
    column: Column
    variables: tuple[str, ...] = ()
    is_step: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms and their coefficients."""

    terms: tuple[Term, ...]
    coefficients: tuple[Fraction, ...]

    @property
    def is_plausible(self) -> bool:
        """Return False for a coincidence: code causes whole steps, and no slope of a tiny fraction."""
        for term, factor in zip(self.terms, self.coefficients, strict=True):
            if term.is_step and (factor < 0 or factor.denominator > 1):
                return False
            if not factor or factor.denominator > LARGEST_DENOMINATOR:
                return False
        return True

    @property
    def length(self) -> int:
        """The length of the description; a minus costs 1 and a fraction 2 on top of the terms."""
        extra = (
            (factor < 0) + 2 * (factor.denominator > 1) for factor in self.coefficients
        )
        return sum(term.length for term in self.terms) + sum(extra)

    def __str__(self) -> str:
        """The sum as the claims' language writes it, the constant last."""
        texts = []
        parts = zip(self.terms, self.coefficients, strict=True)
        for term, factor in sorted(parts, key=lambda part: not part[0].variables):
            size = "" if abs(factor) == 1 else f"{abs(factor)}*"
            texts.append(
                f"{'-' * (factor < 0)}{size}{term.text}"
                if term.variables
                else str(factor)
            )
        return " + ".join(texts).replace("+ -", "- ")


def fitted(runs: Sequence[CountedRun], *, with_laws: bool = True) -> dict[str, Any]:
    """Return the fields of a ``VariantResult``: samples, and the laws that fit them unless left out."""
    fits = fit_metrics(runs) if with_laws else {}
    return {
        "laws": {name: fit.law for name, fit in fits.items() if fit.law},
        "growth": {name: fit.growth for name, fit in fits.items() if fit.growth},
        "samples": [
            {
                "at": run.at,
                "metrics": run.metrics,
                "error": run.error,
                "ranges": run.ranges,
            }
            for run in runs
        ],
        "sites": [
            dict(zip(SITE, place, strict=True)) | {"law": fit.law, "growth": fit.growth}
            for place, fit in (fit_sites(runs).items() if with_laws else ())
        ],
        "modelled": sorted({name for run in runs for name in run.ranges}),
        "unknown": sorted({name for run in runs for name in run.unknown}),
        "approximate": sorted({name for run in runs for name in run.approximate}),
    }


def fit_metrics(runs: Sequence[CountedRun]) -> dict[str, Fit]:
    """A fit for each metric over the runs that ended without an error, or over all for how they ended."""
    sweep = [run.at for run in runs]
    fits = {}
    for metric in METRICS:
        is_ending = metric in ENDINGS
        having = [
            run
            for run in runs
            if metric in run.metrics and (is_ending or run.error is None)
        ]
        if having:
            values = [run.metrics[metric] for run in having]
            fits[metric] = fit(
                [run.at for run in having], values, sweep, is_ending=is_ending
            )
    return fits


def fit_sites(runs: Sequence[CountedRun]) -> dict[Place, Fit]:
    """A fit for each line over the runs that ended without an error; a line counts 0 where it is absent."""
    # What was counted up to an exception would bend the law of the whole.
    done = [run for run in runs if run.error is None]
    points, sweep = [run.at for run in done], [run.at for run in runs]
    places = sorted({place for run in done for place in run.sites})
    return {
        place: fit(points, [run.sites.get(place, 0) for run in done], sweep)
        for place in places
    }


def fit(
    points: Sequence[Sizes],
    values: Sequence[int],
    sweep: Sequence[Sizes],
    *,
    is_ending: bool = False,
) -> Fit:
    """The law of a metric with ``values`` at ``points`` of a sweep, or else its rivals or its range.

    A metric of how a run ended is 0 or 1: no law of it gives other values.
    """
    laws = []
    for law in identify(points, values, sweep):
        if is_ending:
            expression = parse_expression(law)
            names = {variable.name for variable in variables(expression)}
            extremes = [
                {min(at[name] for at in sweep), max(at[name] for at in sweep)}
                for name in names
            ]
            corners = (
                dict(zip(names, corner, strict=True)) for corner in product(*extremes)
            )
            # A law that is neither 0 nor 1 at some sizes within the sweep is a coincidence.
            if not all(evaluate(expression, at) in {0, 1} for at in corners):
                continue
        laws.append(law)
    if len(laws) == 1:
        return Fit(laws[0], None)
    if laws:
        return Fit(None, " or ".join(laws))
    # A single point is not expected to have a law: its value is all there is to know.
    if len(sweep) == 1:
        return Fit(None, span(values))
    special = None if is_ending else _special_case(points, values, sweep)
    return special or Fit(None, f"no law, {span(values)}")


def _special_case(
    points: Sequence[Sizes], values: Sequence[int], sweep: Sequence[Sizes]
) -> Fit | None:
    """Name the size 0 or 1 of a variable at which alone a law does not hold; None where there is none."""
    # The search takes long with many variables; a verifier that has them can state its special cases.
    if len(points[0]) > MOST_VARIABLES_OF_SPECIAL_CASES:
        return None
    for name in points[0]:
        for size in (0, 1):
            others = [row for row, point in enumerate(points) if point[name] != size]
            # What is left must show how the metric grows with this very variable.
            if (
                len(others) == len(points)
                or len({points[row][name] for row in others}) < FEWEST_VALUES
            ):
                continue
            rest = [at for at in sweep if at[name] != size]
            laws = identify(
                [points[row] for row in others], [values[row] for row in others], rest
            )
            if len(laws) == 1:
                there = [
                    value
                    for point, value in zip(points, values, strict=True)
                    if point[name] == size
                ]
                return Fit(
                    None, f"{laws[0]}, but {span(there)} at {name}={size}", laws[0]
                )
    return None


def span(values: Sequence[int]) -> str:
    """The smallest and the largest value: ``0..33``, or ``7`` where they are equal."""
    return (
        f"{min(values)}..{max(values)}" if min(values) < max(values) else str(values[0])
    )


def identify(
    points: Sequence[Sizes], values: Sequence[int], sweep: Sequence[Sizes] | None = None
) -> tuple[str, ...]:
    """The law of a metric in the claims' language: one text, several rivals, or nothing.

    ``values`` are the metric at ``points``, which share their variables and may be a part of ``sweep``.
    Repeated points count once; if they disagree, nothing fits.
    """
    distinct: dict[Point, int] = {}
    for point, value in zip(points, values, strict=True):
        if distinct.setdefault(tuple(point.items()), value) != value:
            return ()
    # Not even a constant is determined by so few, whatever fits them.
    if len(distinct) <= SPARE_POINTS:
        return ()
    every = points if sweep is None else sweep
    flags = frozenset(
        name for name in points[0] if {point[name] for point in every} == {0, 1}
    )
    given = (tuple(distinct), tuple(distinct.values()), flags)
    # Two branches often fit by chance, so they are tried only if no sum fits.
    return _sum_laws(*given) or _max_laws(*given)


@_keep_laws
def _sum_laws(
    points: tuple[Point, ...], values: Column, flags: frozenset[str]
) -> tuple[str, ...]:
    """The shortest sums that fit, if the sweep determines all of them."""
    if len(set(values)) <= 1:
        return (str(values[0]),) if len(values) > SPARE_POINTS else ()
    known = directions(points)
    columns = list(known)
    rest = _divide_out(_shadow(values), map(_shadow, columns))
    found: list[Sum] = []
    least = inf
    for size, shortest in SHORTEST_SUM.items():
        # No longer sum can be shorter to describe than what was found.
        if least <= shortest:
            break
        spare = SPARE_POINTS_OF_COMPLEX if size == max(SHORTEST_SUM) else SPARE_POINTS
        # Of so few points no sum of so many terms, or more, is determined.
        if not found and len(values) < size + spare:
            return ()
        # A combination reaches the values where they depend on one another once those are divided out.
        for hit in _dependent(rest, size):
            for chosen in product(*[known[columns[i]] for i in hit]):
                if sum([term.length for term in chosen]) > least:
                    continue
                law = Sum(
                    chosen, _solve([term.column for term in chosen], values) or ()
                )
                if law.coefficients and law.is_plausible:
                    found.append(law)
                    least = min(least, law.length)
    found = [law for law in found if law.length == least]
    if not all(_is_determined(law, points, values, flags) for law in found):
        return ()
    return _shortest([(law.length, str(law)) for law in found])


def _shortest(laws: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    shortest = min((length for length, _ in laws), default=0)
    # If many laws fit, the sweep decides nothing, and a list of them helps nobody.
    rivals = tuple(dict.fromkeys(text for length, text in laws if length == shortest))
    return rivals if len(rivals) <= MOST_RIVALS else ()


@lru_cache(maxsize=16)
def directions(points: tuple[Point, ...]) -> dict[Column, list[Term]]:
    """The shortest terms of each direction: this sweep cannot tell apart columns that are multiples."""
    groups: dict[Column, list[Term]] = {}
    for term in _terms([dict(point) for point in points]):
        # The sweep says nothing about a term that is 0 at every point.
        if divisor := gcd(*term.column):
            divisor = divisor if next(filter(None, term.column)) > 0 else -divisor
            group = groups.setdefault(
                tuple([value // divisor for value in term.column]), []
            )
            if not group or group[0].length == term.length:
                group.append(term)
    return groups


def _terms(points: Sequence[Sizes]) -> Iterator[Term]:
    """Every term over the variables that all points share, shortest kinds first."""
    columns = {name: tuple(point[name] for point in points) for name in points[0]}
    # The lengths rank the kinds of terms: of several laws that fit, the shortest to describe is taken.
    yield Term("1", 1, (1,) * len(points))
    for name, column in columns.items():
        yield Term(name, VARIABLE_LENGTH, column, (name,))
    for name, column in columns.items():
        yield Term(
            f"min(1, {name})", 3, tuple(min(1, value) for value in column), (name,)
        )
    for (left, first), (right, second) in combinations_with_replacement(
        columns.items(), 2
    ):
        products = tuple(map(mul, first, second))
        yield Term(f"{left}*{right}", 4, products, (left, right))
    for name, column in columns.items():
        for size in CHUNKS:
            steps = tuple([-(-value // size) for value in column])
            yield Term(f"ceil({name}/{size})", 5, steps, (name,), is_step=True)


@lru_cache(maxsize=1024)
def _shadow(column: Column) -> Column:
    """The polynomial with the column's values as coefficients, at each of ``BASES``, modulo a prime.

    Up to four columns that are linearly dependent have shadows that are; others do by a chance of one in
    ``PRIME``. So thousands can be searched; what is found is solved exactly.
    """
    shadow = []
    for base in BASES:
        so_far = 0
        for value in column:
            so_far = (so_far * base + value) % PRIME
        shadow.append(so_far)
    return tuple(shadow)


def _dependent(
    shadows: Sequence[Column | None], size: int, offset: int = 0
) -> list[tuple[int, ...]]:
    """Return the index sets, from ``offset``, of ``size`` shadows that depend on one another."""
    if size == 1:
        return [(i,) for i, shadow in enumerate(shadows, offset) if shadow is None]
    if size == 2:
        return _parallel(shadows, offset)
    found = []
    for i, shadow in enumerate(shadows):
        if shadow:
            rest = _divide_out(shadow, shadows[i + 1 :])
            for others in _dependent(rest, size - 1, offset + i + 1):
                found.append((offset + i, *others))
    return found


def _parallel(shadows: Sequence[Column | None], offset: int) -> list[tuple[int, ...]]:
    """Return the pairs of indices, from ``offset``, of shadows that are multiples of one another."""
    groups: dict[Column, list[int]] = {}
    for i, shadow in enumerate(shadows, offset):
        if shadow:
            scale = _inverses()[next(filter(None, shadow))]
            scaled: Column = ()
            for value in shadow:
                scaled += (value * scale % PRIME,)
            groups.setdefault(scaled, []).append(i)
    pairs: list[tuple[int, ...]] = []
    for group in groups.values():
        pairs += combinations(group, 2)
    return pairs


def _divide_out(
    direction: Column, shadows: Iterable[Column | None]
) -> list[Column | None]:
    """Remove from each shadow its part in a direction: one number less; None if nothing is left."""
    pivot, leading = next((i, value) for i, value in enumerate(direction) if value)
    inverse = _inverses()[leading]
    parts = [
        (i, value * inverse % PRIME) for i, value in enumerate(direction) if i != pivot
    ]
    left: list[Column | None] = []
    for shadow in shadows:
        rest: Column = ()
        if shadow:
            for i, part in parts:
                rest += ((shadow[i] - shadow[pivot] * part) % PRIME,)
        left.append(rest if any(rest) else None)
    return left


@cache
def _inverses() -> list[int]:
    """Return the inverse of each number modulo the prime."""
    found = [0, 1]
    for number in range(2, PRIME):
        found.append(-(PRIME // number) * found[PRIME % number] % PRIME)
    return found


def _solve(
    columns: Sequence[Sequence[int]], target: Sequence[int]
) -> tuple[Fraction, ...] | None:
    """The only coefficients with which the columns sum up to ``target``; None where none or many do."""
    unknowns = len(columns)
    rows = [list(row) for row in zip(*columns, target, strict=True)]
    # Elimination without division: every row keeps its zeros, and the integers stay small for three unknowns.
    for pivot in range(unknowns):
        found = next((i for i in range(pivot, len(rows)) if rows[i][pivot]), None)
        if found is None:
            return None
        rows[pivot], rows[found] = rows[found], rows[pivot]
        chosen, leading = rows[pivot], rows[pivot][pivot]
        for row in rows:
            factor = row[pivot]
            if row is not chosen and factor:
                for column, value in enumerate(chosen):
                    row[column] = leading * row[column] - factor * value
    for row in rows[unknowns:]:
        if row[-1]:
            return None
    return tuple([Fraction(row[-1], row[i]) for i, row in enumerate(rows[:unknowns])])


def _is_determined(
    law: Sum, points: tuple[Point, ...], values: Column, flags: frozenset[str]
) -> bool:
    """Return True if a sweep has enough points for a law and enough values to prove each slope."""
    terms = law.terms
    # A column that is flat except for one step fits many values by chance.
    flat = any(
        term.is_step or (term.variables and len(set(term.column)) == 2)
        for term in terms
    )
    is_complex = len(terms) == max(SHORTEST_SUM) or (
        flat and (len(terms) > 1 or terms[0].is_step)
    )
    if len(values) < len(terms) + (
        SPARE_POINTS_OF_COMPLEX if is_complex else SPARE_POINTS
    ):
        return False
    if any(len(set(term.column)) < FEWEST_VALUES for term in terms if term.is_step):
        return False
    for name in {name for term in terms for name in term.variables} - flags:
        sizes = [dict(point)[name] for point in points]
        # A polynomial of degree d has d + 1 coefficients: so many sizes fit any of them, and prove none.
        degree = max(term.variables.count(name) for term in terms)
        if len(set(sizes)) <= degree + 1:
            return False
        # A law must not depend on the size that it is to explain, however many points have it.
        for left_out in set(sizes):
            rows = [row for row, size in enumerate(sizes) if size != left_out]
            if not _follows_from(law, values, rows):
                return False
    return _predicts(law, values, range(len(values)))


def _predicts(law: Sum, values: Column, rows: Sequence[int]) -> bool:
    """Return True if the law follows without any one of ``rows``, and so predicts each of them."""
    # Leave one out: a law must not depend on the point that it is to explain.
    return all(
        _follows_from(law, values, [i for i in rows if i != left_out])
        for left_out in rows
    )


def _follows_from(law: Sum, values: Column, rows: Sequence[int]) -> bool:
    """Return whether the coefficients of a law are the only ones that fit these rows."""
    columns = [[term.column[i] for i in rows] for term in law.terms]
    return _solve(columns, [values[i] for i in rows]) is not None


@_keep_laws
def _max_laws(
    points: tuple[Point, ...], values: Column, flags: frozenset[str]
) -> tuple[str, ...]:
    """The shortest of every ``max`` of two sums that is exact at all points.

    Depending on the sizes, one of two phases sets such a peak. A branch never exceeds the metric, and is the
    only law of the points that it alone touches.
    """
    terms = [term for group in directions(points).values() for term in group]
    branches = []
    for law in dict.fromkeys(
        _lower_bounds([t for t in terms if t.length <= LONGEST_TERM_IN_MAX], values)
    ):
        touched = []
        for i, value in enumerate(values):
            predicted = Fraction()
            for term, factor in zip(law.terms, law.coefficients, strict=True):
                predicted += factor * term.column[i]
            if predicted == value:
                touched.append(i)
        if _predicts(law, values, touched):
            branches.append((law, frozenset(touched)))
    found = []
    for (first, left), (second, right) in combinations(branches, 2):
        # Every point must be explained by one of the branches, and each of them by points of its own.
        if len(left | right) == len(values) and all(
            len(own) > SPARE_POINTS
            and (str(law),)
            == _sum_laws(
                tuple(points[i] for i in own), tuple(values[i] for i in own), flags
            )
            for law, own in (
                (first, sorted(left - right)),
                (second, sorted(right - left)),
            )
        ):
            found.append(
                (first.length + second.length + MAX_LENGTH, f"max({first}, {second})")
            )
    return _shortest(found)


def _lower_bounds(candidates: Sequence[Term], values: Column) -> Iterator[Sum]:
    """One term, a term and a constant, or two variables, with whole positive coefficients.

    Those of two terms equal the metric at two points at least.
    """
    for term in candidates:
        slope = min(
            [v // c for c, v in zip(term.column, values, strict=True) if c], default=0
        )
        if slope > 0:
            yield Sum((term,), (Fraction(slope),))
    for first, second in combinations(candidates, 2):
        if first.variables and not first.length == second.length == VARIABLE_LENGTH:
            continue
        rows = list(zip(first.column, second.column, values, strict=True))
        # Two points fix the coefficients; of all pairs of points, those are kept that exceed no value.
        found = set()
        for (x1, y1, v1), (x2, y2, v2) in combinations(rows, 2):
            if determinant := x1 * y2 - x2 * y1:
                a, a_rest = divmod(v1 * y2 - v2 * y1, determinant)
                b, b_rest = divmod(x1 * v2 - x2 * v1, determinant)
                if a > 0 and b > 0 and not a_rest and not b_rest:
                    found.add((a, b))
        for a, b in found:
            for x, y, v in rows:
                if a * x + b * y > v:
                    break
            else:
                yield Sum((first, second), (Fraction(a), Fraction(b)))
