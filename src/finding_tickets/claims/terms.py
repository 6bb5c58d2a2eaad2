"""The terms that laws are made of, and exact linear algebra on their values at the points of a sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import ceil, gcd
from random import Random

# One value for each point.
Column = tuple[int, ...]
Residues = list[int]

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
LARGEST_DENOMINATOR = 8
PRIME = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Term:
    """A term without its coefficient: its text, its length as a description, its value at each point."""

    text: str
    length: int
    column: Column
    variables: tuple[str, ...] = ()
    is_constant: bool = False
    is_step: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms and their coefficients."""

    terms: tuple[Term, ...]
    coefficients: tuple[Fraction, ...]

    @property
    def is_plausible(self) -> bool:
        """Whether every coefficient is one that code can cause; others are coincidences."""
        return all(
            factor > 0 and factor.denominator == 1
            if term.is_step
            else factor != 0 and factor.denominator <= LARGEST_DENOMINATOR
            for term, factor in zip(self.terms, self.coefficients, strict=True)
        )

    @property
    def length(self) -> int:
        """The length of the description; a minus costs 1 and a fraction 2 on top of the terms."""
        extra = sum((factor < 0) + 2 * (factor.denominator > 1) for factor in self.coefficients)
        return sum(term.length for term in self.terms) + extra

    def __str__(self) -> str:
        """The sum as the claims' language writes it, the constant last."""
        texts = []
        for term, factor in sorted(
            zip(self.terms, self.coefficients, strict=True), key=lambda part: part[0].is_constant
        ):
            size = "" if abs(factor) == 1 else f"{abs(factor)}*"
            texts.append(str(factor) if term.is_constant else f"{'-' * (factor < 0)}{size}{term.text}")
        return " + ".join(texts).replace("+ -", "- ")


def terms(points: Sequence[Mapping[str, int]]) -> Iterator[Term]:
    """Every term over the variables that all points share, shortest kinds first."""
    variables = {name: tuple(point[name] for point in points) for name in points[0]}
    # The lengths order the kinds: of laws that fit alike the one that is simplest to say is taken.
    yield Term("1", 1, (1,) * len(points), is_constant=True)
    for name, column in variables.items():
        yield Term(name, 2, column, (name,))
    for name, column in variables.items():
        yield Term(f"min(1, {name})", 3, tuple(min(1, value) for value in column), (name,))
    for (left, first), (right, second) in combinations_with_replacement(variables.items(), 2):
        products = tuple(a * b for a, b in zip(first, second, strict=True))
        yield Term(f"{left}*{right}", 4, products, (left, right))
    for name, column in variables.items():
        for size in CHUNKS:
            steps = tuple(ceil(value / size) for value in column)
            yield Term(f"ceil({name}/{size})", 5, steps, (name,), is_step=True)


def directions(candidates: Iterator[Term]) -> dict[Column, list[Term]]:
    """The terms by direction: columns that are multiples of each other cannot be told apart by this sweep.

    Of one direction the shortest terms are kept.
    """
    groups: dict[Column, list[Term]] = {}
    for term in candidates:
        # A term that is 0 at every point can be neither found nor excluded.
        if (key := primitive(term.column)) is None:
            continue
        group = groups.setdefault(key, [])
        if not group or group[0].length == term.length:
            group.append(term)
    return groups


def primitive(column: Column) -> Column | None:
    """The column divided by its greatest common divisor and leading sign; None for zeros only."""
    divisor = gcd(*column)
    if divisor == 0:
        return None
    divisor = divisor if next(value for value in column if value) > 0 else -divisor
    return tuple(value // divisor for value in column)


def solve(columns: Sequence[Column], target: Column) -> tuple[Fraction, ...] | None:
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
        for i, row in enumerate(rows):
            if i != pivot and (factor := row[pivot]):
                rows[i] = [leading * a - factor * b for a, b in zip(row, chosen, strict=True)]
    if any(row[-1] for row in rows[unknowns:]):
        return None
    return tuple(Fraction(row[-1], row[i]) for i, row in enumerate(rows[:unknowns]))


def determined_without_any(columns: Sequence[Column], target: Column, rows: Sequence[int]) -> bool:
    """Whether a fit to all but any one of ``rows`` has only one solution, and so predicts that row."""
    # Leave-one-out: a law must not rest on the point that it is to explain.
    for left_out in rows:
        kept = [i for i in rows if i != left_out]
        fitted = solve([tuple(column[i] for i in kept) for column in columns], tuple(target[i] for i in kept))
        if fitted is None:
            return False
    return True


def spanning(columns: Sequence[Column], target: Column, size: int) -> Iterator[tuple[int, ...]]:
    """The index sets of ``size`` (1 to 3) columns whose combinations may reach ``target``; none is missed.

    The columns are primitive and differ. They are projected to ``size + 1`` dimensions modulo a prime. There,
    two columns complete a combination where they are parallel once the target, and for three the first
    column, is divided out.
    """
    if size == 1:
        yield from ((i,) for i, column in enumerate(columns) if column == primitive(target))
        return
    random = Random(0)  # noqa: S311 - a fixed sequence keeps the search deterministic
    weights = [[random.randrange(1, PRIME) for _ in target] for _ in range(size + 1)]
    projected = [
        [sum(w * value for w, value in zip(row, column, strict=True)) % PRIME for row in weights]
        for column in (target, *columns)
    ]
    quotient = _divide_out(projected[0], projected[1:])
    if size == 2:
        yield from _parallel(quotient, 0)
        return
    for first in range(len(columns)):
        for pair in _parallel(_divide_out(quotient[first], quotient[first + 1 :]), first + 1):
            yield (first, *pair)


def _divide_out(direction: Residues, columns: Sequence[Residues]) -> list[Residues]:
    pivot = next((i for i, value in enumerate(direction) if value), None)
    if pivot is None:
        return [[0] * (len(direction) - 1) for _ in columns]
    # Modulo a prime every number but 0 has an inverse, so that this stays exact and quick.
    inverse = pow(direction[pivot], -1, PRIME)
    unit = [value * inverse % PRIME for value in direction]
    others = [i for i in range(len(direction)) if i != pivot]
    return [[(column[i] - column[pivot] * unit[i]) % PRIME for i in others] for column in columns]


def _parallel(columns: Sequence[Residues], offset: int) -> Iterator[tuple[int, int]]:
    """The pairs of parallel columns of two dimensions, by their number from ``offset``."""
    slopes = defaultdict(list)
    for number, (x, y) in enumerate(columns, offset):
        if x or y:
            slopes[y * pow(x, -1, PRIME) % PRIME if x else None].append(number)
    for group in slopes.values():
        yield from combinations(group, 2)
