"""What ``O(expression)`` means on the finite points of a sweep.

With an exact law the question is decided by the law: each of its terms must be dominated by a term of the
class. ``params*params`` dominates ``params`` and any constant, whatever the points. Two variables are
independent unless the sweep shows otherwise: ``largest`` counts as bounded by ``total`` where it is nowhere
larger, although at two points at least ``total`` is smaller than ``largest`` is elsewhere.

Without a law the ratio of the metric to the class must stop growing: over the half of the points with the
larger values it is at most twice what it is over the other half, and for a class of several terms twice for
each of them, since each may have a factor of its own. Fewer than four points decide nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from statistics import median

from finding_tickets.verify.expressions import (
    Binary,
    Call,
    Expression,
    Negative,
    Number,
    Variable,
    evaluate,
)
from finding_tickets.verify.grammar import parse_expression

Points = Sequence[Mapping[str, int]]
Monomial = frozenset[tuple[str, int]]

CONSTANT: Monomial = frozenset()
FEWEST_POINTS = 4
SLACK = 2
CROSSINGS = 2


def bounded(growth: Expression, points: Points, values: Sequence[int], law: str | None) -> bool | None:
    """Whether a metric is O(``growth``) over a sweep; None where the points do not decide it.

    Raises:
        ExpressionError: The class cannot be evaluated at a point.
    """
    if law is not None:
        return not undominated(law, growth, points)
    if len(points) < FEWEST_POINTS:
        return None
    slack = SLACK * len(set(_monomials(growth)))
    return _levels_off(_ratios(growth, points, values), slack)


def undominated(law: str, growth: Expression, points: Points) -> list[str]:
    """The terms of a law that the class does not dominate, as texts."""
    bounds = set(_monomials(growth))
    return [
        _text(term)
        for term in dict.fromkeys(_monomials(parse_expression(law)))
        if not any(_dominates(bound, term) or _exceeds_nowhere(term, bound, points) for bound in bounds)
    ]


def growth_class(points: Points, values: Sequence[int]) -> str | None:
    """The smallest class, among constants, variables and products of two, that bounds the values.

    Of several of one size it is the one to which the values are most nearly proportional.
    """
    if len(points) < FEWEST_POINTS:
        return None
    pairs = combinations_with_replacement(points[0], 2)
    for names in (["1"], list(points[0]), [f"{left}*{right}" for left, right in pairs]):
        ratios = {name: _ratios(parse_expression(name), points, values) for name in names}
        bounding = [name for name in names if _levels_off(ratios[name], SLACK)]
        if bounding:
            return f"O({min(bounding, key=lambda name: max(ratios[name]) / (median(ratios[name]) or 1))})"
    return None


def _ratios(growth: Expression, points: Points, values: Sequence[int]) -> list[Fraction]:
    """The metric by the class, in the order of the metric's values."""
    bounds = [max(Fraction(1), abs(evaluate(growth, point))) for point in points]
    return [value / bound for value, bound in sorted(zip(values, bounds, strict=True))]


def _levels_off(ratios: Sequence[Fraction], slack: int) -> bool:
    half = len(ratios) // 2
    return max(ratios[half:]) <= slack * max(ratios[:half])


def _monomials(expression: Expression) -> Iterator[Monomial]:
    """The products of variables that an expression is made of, as far as its growth is concerned."""
    match expression:
        case Number():
            yield CONSTANT
        case Variable(name):
            yield frozenset({(name, 1)})
        case Negative(operand):
            yield from _monomials(operand)
        case Binary("*", left, right):
            yield from (_times(a, b) for a in _monomials(left) for b in _monomials(right))
        case Binary("/" | "//", left, _):
            yield from _monomials(left)
        case Binary("%", _, right):
            yield from _monomials(right)
        case Binary(_, left, right):
            yield from _monomials(left)
            yield from _monomials(right)
        case Call(function, arguments):
            yield from _of_call(function, arguments)


def _of_call(function: str, arguments: Sequence[Expression]) -> Iterator[Monomial]:
    if function == "min" and any(isinstance(argument, Number) for argument in arguments):
        yield CONSTANT
        return
    if function == "log2":
        yield from (frozenset({(f"log2({_text(part)})", 1)}) for part in _monomials(arguments[0]))
        return
    for argument in arguments:
        yield from _monomials(argument)


def _times(left: Monomial, right: Monomial) -> Monomial:
    return frozenset((Counter(dict(left)) + Counter(dict(right))).items())


def _dominates(bound: Monomial, term: Monomial) -> bool:
    powers = dict(bound)
    return all(power <= powers.get(name, 0) for name, power in term)


def _exceeds_nowhere(term: Monomial, bound: Monomial, points: Points) -> bool:
    """Whether a term stays below a bound that it could have exceeded: their ranges overlap."""
    terms, bounds = ([_value(monomial, point) for point in points] for monomial in (term, bound))
    crossings = sum(value < max(terms) for value in bounds)
    return crossings >= CROSSINGS and all(a <= b for a, b in zip(terms, bounds, strict=True))


def _value(monomial: Monomial, point: Mapping[str, int]) -> Fraction:
    return prod(
        (evaluate(parse_expression(name), point) ** power for name, power in monomial), start=Fraction(1)
    )


def _text(monomial: Monomial) -> str:
    return "*".join(name for name, power in sorted(monomial) for _ in range(power)) or "1"
