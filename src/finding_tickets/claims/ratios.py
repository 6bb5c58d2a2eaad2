"""Claims about time: the seconds of one variant as a multiple of another's, `<= 0.5*found`.

A variant's name stands for the time of its run. A time by itself is another one on every machine, so a claim
states a multiple of one other variant's; sweep variables may take part, as in ``<= 2*found/params``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from finding_tickets.claims.language import (
    Binary,
    Call,
    Comparison,
    Expression,
    ExpressionError,
    Growth,
    Number,
    Range,
    Variable,
    evaluate,
    parse_condition,
    satisfied,
    variables,
)


@dataclass(frozen=True)
class Ratio:
    """What a claim says of the time of its variant, given in multiples of that of ``reference``."""

    reference: str
    condition: Comparison | Range

    def edges(self, at: Mapping[str, int]) -> tuple[Fraction, ...]:
        """The ratios at which the outcome turns at a point; raises what ``evaluate`` raises."""
        return tuple(evaluate(side, {**at, self.reference: 1}) for side in _sides(self.condition))

    def outcome(self, low: float, high: float, at: Mapping[str, int]) -> bool | None:
        """Whether all ratios from ``low`` to ``high`` meet the claim, or none; None where only some do."""
        ends, edges = (Fraction(low), Fraction(high)), self.edges(at)
        met = [satisfied(self.condition, ratio, {**at, self.reference: 1}) for ratio in ends]
        if isinstance(self.condition, Range):
            # An interval that is wider than the range has both ends outside of it, and may still be right.
            is_outside = ends[1] < edges[0] or ends[0] > edges[1]
        else:
            is_outside = not any(met)
        return False if is_outside else True if all(met) else None


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
        raise ExpressionError(error.message, hint=error.hint or hint) from None
    # Seconds have no law: they are other ones in each run.
    if isinstance(condition, Growth):
        raise ExpressionError(f"'{text}' is a growth class, and times have no law", hint=hint)
    named = list(dict.fromkeys(each.name for each in variables(condition) if each.name in {subject, *others}))
    if subject in named:
        raise ExpressionError(f"'{text}' compares {subject} with itself", hint=hint)
    if not named:
        message = f"'{text}' compares with no other variant, and seconds differ on every machine"
        raise ExpressionError(message, hint=hint)
    if len(named) > 1:
        message = f"'{text}' compares with {' and '.join(named)}; a claim compares with one other variant"
        raise ExpressionError(message, hint="make it several claims")
    # Times of machines cancel out only where the expression is a number times one time.
    if not all(_degree(side, named) == 1 for side in _sides(condition)):
        raise ExpressionError(f"'{text}' is no multiple of the time of {named[0]}", hint=hint)
    if isinstance(condition, Comparison) and condition.symbol in {"==", "!="}:
        message = f"'{text}' is about equal times, and no two times are equal"
        raise ExpressionError(message, hint="write <= or >=, or a range as 0.9*found..1.1*found")
    return Ratio(named[0], condition)


def _sides(condition: Comparison | Range) -> tuple[Expression, ...]:
    return (condition.low, condition.high) if isinstance(condition, Range) else (condition.expression,)


def _degree(expression: Expression, times: Collection[str]) -> int | None:
    """The power of a time that an expression is: 0 for a number, 1 for a time; None where it is no power."""
    match expression:
        case Number():
            return 0
        case Variable(name):
            return int(name in times)
        case Binary(symbol, left, right):
            first, second = _degree(left, times), _degree(right, times)
            if first is None or second is None:
                return None
            if symbol in {"*", "/"}:
                return first + second if symbol == "*" else first - second
            return first if first == second and (symbol in {"+", "-"} or first == 0) else None
        case Call(function, arguments):
            degrees = {_degree(argument, times) for argument in arguments}
            if len(degrees) > 1 or (function not in {"max", "min"} and degrees != {0}):
                return None
            return degrees.pop()
