"""The terms that laws are made of, and their values at the points of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, gcd

Column = tuple[int, ...]

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
"""Sizes ``k`` for which work grows in steps of ``ceil(x/k)``."""

LARGEST_DENOMINATOR = 8


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
        return all(map(_is_plausible, self.terms, self.coefficients))

    @property
    def length(self) -> int:
        """The length of the description; a minus costs 1 and a fraction 2 on top of the terms."""
        minus = sum(coefficient < 0 for coefficient in self.coefficients)
        fractions = sum(coefficient.denominator > 1 for coefficient in self.coefficients)
        return sum(term.length for term in self.terms) + minus + 2 * fractions

    def __str__(self) -> str:
        """The sum as the claims' language writes it, the constant last."""
        parts = sorted(zip(self.terms, self.coefficients, strict=True), key=lambda part: part[0].is_constant)
        return " + ".join(_product(*part) for part in parts).replace("+ -", "- ")


@dataclass(frozen=True, slots=True)
class Direction:
    """All shortest terms whose columns are multiples of each other: this sweep cannot tell them apart."""

    column: Column
    terms: tuple[Term, ...]


def terms(points: Sequence[Mapping[str, int]]) -> Iterator[Term]:
    """Every term over the variables that all points share, shortest kinds first."""
    variables = {name: tuple(point[name] for point in points) for name in points[0]}
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


def directions(candidates: Iterator[Term]) -> list[Direction]:
    """The terms grouped by direction, longer ones dropped where a shorter one says the same."""
    groups: dict[Column, list[Term]] = {}
    for term in candidates:
        if (key := primitive(term.column)) is None:
            continue
        group = groups.setdefault(key, [])
        if not group or group[0].length == term.length:
            group.append(term)
    return [Direction(key, tuple(group)) for key, group in groups.items()]


def _is_plausible(term: Term, coefficient: Fraction) -> bool:
    if term.is_step:
        return coefficient > 0 and coefficient.denominator == 1
    return coefficient != 0 and coefficient.denominator <= LARGEST_DENOMINATOR


def _product(term: Term, coefficient: Fraction) -> str:
    if term.is_constant:
        return str(coefficient)
    sign = "-" if coefficient < 0 else ""
    size = abs(coefficient)
    return f"{sign}{term.text}" if size == 1 else f"{sign}{size}*{term.text}"


def primitive(column: Column) -> Column | None:
    """The column divided by its greatest common divisor and leading sign; None for zeros only."""
    divisor = gcd(*column)
    if divisor == 0:
        return None
    leading = next(value for value in column if value)
    divisor = divisor if leading > 0 else -divisor
    return tuple(value // divisor for value in column)
