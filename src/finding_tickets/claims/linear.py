"""Exact linear algebra on a few columns of integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

from finding_tickets.claims.terms import Column, primitive

PRIME = 2**31 - 1
Residues = list[int]


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
    return all(_determined(columns, target, [i for i in rows if i != left_out]) for left_out in rows)


def _determined(columns: Sequence[Column], target: Column, rows: Sequence[int]) -> bool:
    kept = [tuple(column[i] for i in rows) for column in columns]
    return solve(kept, tuple(target[i] for i in rows)) is not None


def spanning(columns: Sequence[Column], target: Column, size: int) -> Iterator[tuple[int, ...]]:
    """The index sets of ``size`` (1 to 3) columns whose combinations may reach ``target``; none is missed.

    The columns are primitive and differ. They are projected to ``size + 1`` dimensions modulo a prime. There,
    two columns complete a combination where they are parallel once the target, and for three the first
    column, is divided out.
    """
    if size == 1:
        yield from ((i,) for i, column in enumerate(columns) if column == primitive(target))
        return
    projected = _project([target, *columns], size + 1)
    quotient = _divide_out(projected[0], projected[1:])
    if size == 2:
        yield from _parallel(quotient, range(len(columns)))
        return
    for first in range(len(columns)):
        rest = range(first + 1, len(columns))
        reduced = _divide_out(quotient[first], [quotient[i] for i in rest])
        for pair in _parallel(reduced, rest):
            yield (first, *pair)


def _project(columns: Sequence[Column], dimensions: int) -> list[Residues]:
    random = Random(0)  # noqa: S311 - a fixed sequence keeps the search deterministic
    weights = [[random.randrange(1, PRIME) for _ in columns[0]] for _ in range(dimensions)]
    return [
        [sum(w * value for w, value in zip(row, column, strict=True)) % PRIME for row in weights]
        for column in columns
    ]


def _divide_out(direction: Residues, columns: Sequence[Residues]) -> list[Residues]:
    pivot = next((i for i, value in enumerate(direction) if value), None)
    if pivot is None:
        return [[0] * (len(direction) - 1) for _ in columns]
    inverse = pow(direction[pivot], -1, PRIME)
    unit = [value * inverse % PRIME for value in direction]
    others = [i for i in range(len(direction)) if i != pivot]
    return [[(column[i] - column[pivot] * unit[i]) % PRIME for i in others] for column in columns]


def _parallel(columns: Sequence[Residues], names: Sequence[int]) -> Iterator[tuple[int, int]]:
    slopes = defaultdict(list)
    for name, (x, y) in zip(names, columns, strict=True):
        if x or y:
            slopes[y * pow(x, -1, PRIME) % PRIME if x else None].append(name)
    for group in slopes.values():
        yield from combinations(group, 2)
