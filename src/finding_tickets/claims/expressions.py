"""The values of the claims' language: expressions over a sweep's variables, and conditions on a metric.

Evaluation is exact (integers and fractions); only ``log2`` of what is no power of two is rounded. The text
form is read by ``grammar.py``.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from finding_tickets.errors import BadDataError


class ExpressionError(BadDataError):
    """An expression that cannot be read or evaluated; ``position`` is a column of its text, from 0."""

    def __init__(self, message: str, *, position: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


@dataclass(frozen=True, slots=True)
class Number:
    """An integer; a decimal is read as one divided by a power of ten."""

    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the sweep, and where it stands in the text."""

    name: str
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """The operand with its sign changed."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands joined by ``+ - * / //`` or ``%``."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """``max``, ``min``, ``ceil`` or ``log2`` of its arguments."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Variable | Negative | Binary | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric stands in the relation ``symbol`` to an expression."""

    symbol: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Range:
    """A metric lies between two expressions, both included."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Growth:
    """A metric grows at most like an expression; ``growth.py`` says what that means on a sweep."""

    expression: Expression


Condition = Comparison | Range | Growth

OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": lambda left, right: Fraction(left // right),
    "%": operator.mod,
}
RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}


def _log2(values: Sequence[Fraction]) -> Fraction:
    """Exact for powers of two; otherwise strictly between the powers around it, so that ``ceil`` is right."""
    (value,) = values
    if value <= 0:
        raise ExpressionError(f"log2 of {value}, which is not positive")
    below = value.numerator.bit_length() - value.denominator.bit_length()
    below -= Fraction(2) ** below > value
    if value == Fraction(2) ** below:
        return Fraction(below)
    fraction = math.log2(value / Fraction(2) ** below)
    return below + Fraction(min(max(fraction, 2.0**-50), 1 - 2.0**-50))


FUNCTIONS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "max": max,
    "min": min,
    "ceil": lambda values: Fraction(math.ceil(values[0])),
    "log2": _log2,
}


def evaluate(expression: Expression, at: Mapping[str, int]) -> Fraction:
    """The value of an expression at a point of the sweep.

    Raises:
        ExpressionError: A variable is unknown, a divisor is 0, or ``log2`` gets what is not positive.
    """
    match expression:
        case Number(value):
            return Fraction(value)
        case Variable(name):
            check_variables(expression, at)
            return Fraction(at[name])
        case Negative(operand):
            return -evaluate(operand, at)
        case Binary(symbol, left, right):
            return _binary(symbol, evaluate(left, at), evaluate(right, at))
        case Call(function, arguments):
            return FUNCTIONS[function]([evaluate(argument, at) for argument in arguments])


def satisfied(condition: Comparison | Range, measured: int | Fraction, at: Mapping[str, int]) -> bool:
    """Whether a measured value meets a condition at a point; raises what ``evaluate`` raises."""
    value = Fraction(measured)
    if isinstance(condition, Range):
        return evaluate(condition.low, at) <= value <= evaluate(condition.high, at)
    return RELATIONS[condition.symbol](value, evaluate(condition.expression, at))


def variables(node: Expression | Condition) -> Iterator[Variable]:
    """Every variable of an expression or a condition, in the order of its text."""
    match node:
        case Variable():
            yield node
        case Negative(part) | Comparison(_, part) | Growth(part):
            yield from variables(part)
        case Binary(_, left, right) | Range(left, right):
            yield from variables(left)
            yield from variables(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from variables(argument)
        case Number():
            return


def check_variables(node: Expression | Condition, known: Iterable[str]) -> None:
    """Raise ``ExpressionError`` for the first variable that the sweep does not have."""
    names = list(known)
    for variable in variables(node):
        if variable.name not in names:
            message = f"unknown variable '{variable.name}' at column {variable.position + 1}"
            raise ExpressionError(message, position=variable.position, hint=suggest(variable.name, names))


def suggest(word: str, known: Sequence[str]) -> str:
    """What a misspelt word may have meant, and what is known."""
    close = difflib.get_close_matches(word, known, n=1)
    question = f"did you mean '{close[0]}'? " if close else ""
    return f"{question}known: {', '.join(known) or 'none'}"


def _binary(symbol: str, left: Fraction, right: Fraction) -> Fraction:
    if symbol in {"/", "//", "%"} and right == 0:
        raise ExpressionError(f"division by zero in {left} {symbol} {right}")
    return OPERATORS[symbol](left, right)
