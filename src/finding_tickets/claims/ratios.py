"""Claims about time: the seconds of one variant as a multiple of another's, `<= 0.5*found`.

A variant's name stands for the time of its run. A time by itself is another one on every machine, so a claim
states a multiple of one other variant's; sweep variables may take part, as in ``<= 2*found/params``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from finding_tickets.claims.expressions import (
    Binary,
    Call,
    Comparison,
    Condition,
    Expression,
    ExpressionError,
    Growth,
    Negative,
    Number,
    Range,
    Variable,
    evaluate,
    satisfied,
    variables,
)
from finding_tickets.claims.grammar import parse_condition

if TYPE_CHECKING:
    from finding_tickets.measure.report import Interval

EXACT = {"==", "!="}


@dataclass(frozen=True)
class Ratio:
    """What a claim says of the time of its variant, given in multiples of that of ``reference``."""

    reference: str
    condition: Comparison | Range

    def edges(self, at: Mapping[str, int]) -> tuple[Fraction, ...]:
        """The ratios at which the outcome turns at a point; raises what ``evaluate`` raises."""
        match self.condition:
            case Range(low, high):
                return self._multiple(low, at), self._multiple(high, at)
            case Comparison(_, expression):
                return (self._multiple(expression, at),)

    def outcome(self, found: Interval, at: Mapping[str, int]) -> bool | None:
        """True where all of an interval meets the claim, False where nothing of it does, else None."""
        ends = Fraction(found.low), Fraction(found.high)
        if isinstance(self.condition, Range):
            low, high = self.edges(at)
            is_outside = ends[1] < low or ends[0] > high
        else:
            is_outside = not any(self._meets(end, at) for end in ends)
        if is_outside:
            return False
        return True if all(self._meets(end, at) for end in ends) else None

    def _meets(self, ratio: Fraction, at: Mapping[str, int]) -> bool:
        return satisfied(self.condition, ratio, {**at, self.reference: 1})

    def _multiple(self, expression: Expression, at: Mapping[str, int]) -> Fraction:
        return evaluate(expression, {**at, self.reference: 1})


def parse_ratio(text: str, subject: str, variants: Iterable[str]) -> Ratio:
    """What a claim about the seconds of ``subject`` states, where the ticket has these variants.

    Raises:
        ExpressionError: It states something else; the hint says how to write it.
    """
    others = [name for name in variants if name != subject]
    hint = f"state a multiple of another variant's time, as in <= 0.5*{next(iter(others), 'found')}"
    try:
        condition = parse_condition(text)
    except ExpressionError as error:
        raise ExpressionError(error.message, position=error.position, hint=error.hint or hint) from None
    if isinstance(condition, Growth):
        raise ExpressionError(f"'{text}' is a growth class, and times have no law", hint=hint)
    named = _named(condition, {subject, *others})
    if subject in named:
        raise ExpressionError(f"'{text}' compares {subject} with itself", hint=hint)
    if not named:
        message = f"'{text}' compares with no other variant, and seconds differ on every machine"
        raise ExpressionError(message, hint=hint)
    if len(named) > 1:
        message = f"'{text}' compares with {' and '.join(named)}; a claim compares with one other variant"
        raise ExpressionError(message, hint="make it several claims")
    if not all(_degree(side, named) == 1 for side in _sides(condition)):
        raise ExpressionError(f"'{text}' is no multiple of the time of {named[0]}", hint=hint)
    if isinstance(condition, Comparison) and condition.symbol in EXACT:
        message = f"'{text}' is about equal times, and no two times are equal"
        raise ExpressionError(message, hint="write <= or >=, or a range as 0.9*found..1.1*found")
    return Ratio(named[0], condition)


def _named(condition: Condition, variants: Collection[str]) -> list[str]:
    """The variants that a condition names, each once."""
    return list(dict.fromkeys(each.name for each in variables(condition) if each.name in variants))


def _sides(condition: Comparison | Range) -> tuple[Expression, ...]:
    return (condition.low, condition.high) if isinstance(condition, Range) else (condition.expression,)


def _degree(expression: Expression, times: Collection[str]) -> int | None:
    """The power of a time that an expression is: 0 for a number, 1 for a time; None where it is no power."""
    match expression:
        case Number():
            return 0
        case Variable(name):
            return int(name in times)
        case Negative(operand):
            return _degree(operand, times)
        case Binary(symbol, left, right):
            return _of_two(symbol, _degree(left, times), _degree(right, times))
        case Call(function, arguments):
            degrees = {_degree(argument, times) for argument in arguments}
            if len(degrees) > 1 or (function not in {"max", "min"} and degrees != {0}):
                return None
            return degrees.pop()


def _of_two(symbol: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if symbol == "*":
        return left + right
    if symbol == "/":
        return left - right
    return left if left == right and (symbol in {"+", "-"} or left == 0) else None
