"""Laws of the form ``max(a, b)``: a peak that one of two phases sets, depending on the sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from finding_tickets.claims.linear import determined_without_any
from finding_tickets.claims.terms import Column, Sum, Term

VARIABLE_LENGTH = 2
MAX_LENGTH = 2
"""What writing ``max`` adds to the length of a description."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A sum that nowhere exceeds the metric, and the points at which it equals it."""

    law: Sum
    touched: frozenset[int]


def larger_of_two(
    candidates: Sequence[Term], values: Column, law_of: Callable[[Sequence[int]], tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    """Every ``max`` of two branches that is exact at all points, with the length of its description.

    A branch is one term, a term and a constant, or two variables, with whole positive coefficients. It must
    be the only law of the points that it touches alone, by ``law_of`` of their indices.
    """
    branches = list(_branches(candidates, values))
    for first, second in combinations(branches, 2):
        if len(first.touched | second.touched) < len(values):
            continue
        alone = {first: first.touched - second.touched, second: second.touched - first.touched}
        if all(law_of(sorted(own)) == (str(branch.law),) for branch, own in alone.items()):
            yield first.law.length + second.law.length + MAX_LENGTH, f"max({first.law}, {second.law})"


def _branches(candidates: Sequence[Term], values: Column) -> Iterator[Branch]:
    for law in dict.fromkeys(_lower_bounds(candidates, values)):
        columns = [term.column for term in law.terms]
        touched = [i for i, value in enumerate(values) if _value(law, i) == value]
        if determined_without_any(columns, values, touched):
            yield Branch(law, frozenset(touched))


def _lower_bounds(candidates: Sequence[Term], values: Column) -> Iterator[Sum]:
    for term in candidates:
        slope = min((v // c for c, v in zip(term.column, values, strict=True) if c), default=0)
        if slope > 0:
            yield Sum((term,), (Fraction(slope),))
    for first, second in combinations(candidates, 2):
        if not (first.is_constant or first.length == second.length == VARIABLE_LENGTH):
            continue
        for a, b in _pairs(first.column, second.column, values):
            yield Sum((first, second), (Fraction(a), Fraction(b)))


def _pairs(first: Column, second: Column, values: Column) -> set[tuple[int, int]]:
    """Whole positive ``(a, b)`` with ``a*first + b*second <= values``, and equal at two points at least."""
    rows = list(zip(first, second, values, strict=True))
    found = set()
    for (x1, y1, v1), (x2, y2, v2) in combinations(rows, 2):
        if not (determinant := x1 * y2 - x2 * y1):
            continue
        a, a_rest = divmod(v1 * y2 - v2 * y1, determinant)
        b, b_rest = divmod(x1 * v2 - x2 * v1, determinant)
        if a > 0 and b > 0 and not a_rest and not b_rest:
            found.add((a, b))
    return {(a, b) for a, b in found if all(a * x + b * y <= v for x, y, v in rows)}


def _value(law: Sum, point: int) -> Fraction:
    parts = zip(law.terms, law.coefficients, strict=True)
    return sum((coefficient * term.column[point] for term, coefficient in parts), Fraction(0))
