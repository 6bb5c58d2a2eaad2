"""Check a claim against the counts at the points of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from finding_tickets.claims.language import (
    GROWTH,
    RANGE,
    Call,
    ClaimCondition,
    Expression,
    ExpressionError,
    Number,
    Variable,
    evaluate,
    parse_condition,
    parse_expression,
    satisfied,
)
from finding_tickets.claims.laws import Range, fit, range_text, span
from finding_tickets.claims.metrics import ENDINGS
from finding_tickets.errors import BadDataError

At = Mapping[str, int]
# The only point of what has no sweep.
ONCE = {"run": 1}
# A product of variables, each with its power; the empty one is a constant.
Monomial = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Checked:
    """The outcome of a claim: whether it holds, what was measured, and where it fails."""

    holds: bool | None
    measured: str
    counterexamples: tuple[str, ...] = ()
    modelled: bool = False
    below: tuple[str, ...] = ()  # the counterexamples that are no more than claimed


def at_text(at: At) -> str:
    """A point in words: ``params=4, largest=1024``."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


def named_at(name: str, at: At, link: str = " at ") -> str:
    """Name something at a point; without a sweep, the name alone."""
    return name if dict(at) == ONCE else f"{name}{link}{at_text(at)}"


def parse_conditions(at: Mapping[str, str]) -> dict[str, ClaimCondition]:
    """The conditions that restrict a claim, by variable."""
    return {name: parse_condition(text) for name, text in at.items()}


def meets(at: At, conditions: Mapping[str, ClaimCondition]) -> bool:
    """Return True if a point satisfies every condition; a growth class selects no points."""
    return all(
        condition.relation != GROWTH and satisfied(condition, at[name], at)
        for name, condition in conditions.items()
    )


@contextmanager
def located(claim: str, line: int) -> Iterator[None]:
    """Turn an error in an expression into one of the ticket, with the ID of the claim and its line."""
    try:
        yield
    except ExpressionError as error:
        raise BadDataError(
            f"claim {claim}: {error.message}", line=line, hint=error.hint
        ) from None


def check_counts(
    metric: str,
    value: str,
    points: Sequence[At],
    counts: Sequence[int],
    sweep: Sequence[At],
    ranges: Sequence[Range | None] = (),
) -> Checked:
    """A claim about a metric that was counted at ``points`` of a sweep, one at least.

    Counts that contain modelled numbers have ``ranges``. The counts decide the outcome; it is marked as
    modelled unless it is the same in the whole range.
    """
    condition, found = (
        parse_condition(value),
        fit(points, counts, sweep, is_ending=metric in ENDINGS),
    )
    # People must see that a law was fitted to a part of the sweep.
    covered = coverage(len(points), len(sweep))
    is_sure = False
    if condition.relation == GROWTH:
        # A special case of a single size does not change how a metric grows.
        law = found.law or found.usual
        if law is None:
            return Checked(None, f"the sweep cannot tell: {found}{covered}")
        beyond = undominated(law, *condition.sides)
        excess = (
            f", in which {' and '.join(beyond)} is not bounded by the class"
            if beyond
            else ""
        )
        checked = Checked(not beyond, f"{found}{excess}{covered}")
    else:
        measured = str(found) if min(counts) < max(counts) else span(counts)
        wrong, below = [], []
        for at, count in zip(points, counts, strict=True):
            if satisfied(condition, count, at):
                continue
            wrong.append(f"{at_text(at)}: {count}")
            if count <= max(evaluate(side, at) for side in condition.sides):
                below.append(wrong[-1])
        checked = Checked(
            not wrong, measured + covered, tuple(wrong), below=tuple(below)
        )
        bounds = (
            each or (count, count) for each, count in zip(ranges, counts, strict=False)
        )
        outcomes = [
            outcome(condition, *each, at)
            for each, at in zip(bounds, points, strict=False)
        ]
        is_sure = all(outcomes) if checked.holds else False in outcomes
    if not any(ranges):
        return checked
    note = "" if is_sure else ", which rests on modelled numbers"
    measured = f"~{checked.measured} ({range_text(filter(None, ranges))}){note}"
    return replace(checked, measured=measured, modelled=bool(note))


def outcome(
    condition: ClaimCondition, low: int, high: int | None, at: At
) -> bool | None:
    """Return True if all numbers from ``low`` to ``high`` meet a condition, False if none do, else None.

    Without ``high`` the numbers have no end. Raises what ``evaluate`` raises.
    """
    if condition.relation == "!=":
        met = outcome(replace(condition, relation="=="), low, high, at)
        return None if met is None else not met
    ends = [
        satisfied(condition, low, at),
        condition.relation in {">", ">="}
        if high is None
        else satisfied(condition, high, at),
    ]
    # Numbers may have both ends outside of a claimed range, and others inside.
    first, *_, last = [evaluate(side, at) for side in condition.sides] * 2
    is_range = condition.relation in {RANGE, "=="}
    is_outside = (
        (high is not None and high < first) or low > last if is_range else not any(ends)
    )
    return False if is_outside else True if all(ends) else None


def coverage(checked: int, points: int) -> str:
    """At how many points of the sweep a claim was checked, where that is not all of them."""
    return f", at {checked} of {points} points" if checked < points else ""


def undominated(law: str, growth: Expression) -> list[str]:
    """The terms of a law that a growth class does not dominate; none if it bounds the law.

    Samples cannot decide this, since any class bounds a finite number of them. ``params*params`` dominates
    ``params`` and constants. Variables are independent, even where one was nowhere larger than another.
    """
    bounds = [dict(bound) for bound in _monomials(growth)]
    return [
        _text(term)
        for term in _monomials(parse_expression(law))
        if not any(
            all(power <= bound.get(name, 0) for name, power in term) for bound in bounds
        )
    ]


def _monomials(expression: Expression) -> list[Monomial]:
    """The different products of variables in an expression, as far as its growth is concerned."""
    match expression:
        case Variable(name):
            found = [frozenset({(name, 1)})]
        case Number() | Call("min"):
            # The only min in a law is `min(1, x)`; a class has none.
            found = [frozenset()]
        case Call("*", (left, right)):
            # Each side is reduced first: most terms of a product of sums occur many times.
            ones, others = (
                [Counter(dict(each)) for each in _monomials(side)]
                for side in (left, right)
            )
            found = [
                frozenset((one + other).items()) for one in ones for other in others
            ]
        case Call("/", (left, _)):
            found = _monomials(left)
        case Call("log2", (argument,)):
            found = [
                frozenset({(f"log2({_text(part)})", 1)})
                for part in _monomials(argument)
            ]
        case Call(_, arguments):
            found = [part for argument in arguments for part in _monomials(argument)]
    return list(dict.fromkeys(found))


def _text(monomial: Monomial) -> str:
    return (
        "*".join(name for name, power in sorted(monomial) for _ in range(power)) or "1"
    )
