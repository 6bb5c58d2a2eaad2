"""What ``O(expression)`` means: a question about the exact law of a metric, never about its samples.

Each term of the law must be dominated by a term of the class. ``params*params`` dominates ``params`` and any
constant. Variables are independent: that one was nowhere larger than another in a sweep bounds nothing.
Without a law nothing is decided, since any finite number of points is bounded by any class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from finding_tickets.claims.expressions import Binary, Call, Expression, Negative, Number, Variable
from finding_tickets.claims.grammar import parse_expression

Monomial = frozenset[tuple[str, int]]

CONSTANT: Monomial = frozenset()


def undominated(law: str, growth: Expression) -> list[str]:
    """The terms of a law that the class does not dominate, as texts; none where it bounds the law."""
    bounds = set(_monomials(growth))
    return [
        _text(term)
        for term in dict.fromkeys(_monomials(parse_expression(law)))
        if not any(_dominates(bound, term) for bound in bounds)
    ]


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
        case Binary("/", left, _):
            yield from _monomials(left)
        case Binary(_, left, right):
            yield from _monomials(left)
            yield from _monomials(right)
        case Call(function, arguments):
            yield from _of_call(function, arguments)


def _of_call(function: str, arguments: Sequence[Expression]) -> Iterator[Monomial]:
    if function == "min":
        # Laws contain it as `min(1, x)` only, and classes not at all.
        yield CONSTANT
    elif function == "log2":
        yield from (frozenset({(f"log2({_text(part)})", 1)}) for part in _monomials(arguments[0]))
    else:
        for argument in arguments:
            yield from _monomials(argument)


def _times(left: Monomial, right: Monomial) -> Monomial:
    return frozenset((Counter(dict(left)) + Counter(dict(right))).items())


def _dominates(bound: Monomial, term: Monomial) -> bool:
    powers = dict(bound)
    return all(power <= powers.get(name, 0) for name, power in term)


def _text(monomial: Monomial) -> str:
    return "*".join(name for name, power in sorted(monomial) for _ in range(power)) or "1"
