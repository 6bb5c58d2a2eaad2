"""Check a claim against what was measured: plain values at the points of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from finding_tickets.claims.language import (
    Binary,
    Call,
    Condition,
    Expression,
    ExpressionError,
    Growth,
    Number,
    Variable,
    parse_condition,
    parse_expression,
    satisfied,
)
from finding_tickets.claims.laws import fit, span
from finding_tickets.claims.metrics import ENDINGS
from finding_tickets.claims.ratios import Ratio
from finding_tickets.errors import BadDataError

At = Mapping[str, int]
Monomial = frozenset[tuple[str, int]]
"""A product of variables, each with its power; the empty one is a constant."""


class TimedPoint(NamedTuple):
    """How the times of two variants compare at a point: in words, and as median, low and high ratio."""

    at: At
    text: str
    interval: tuple[float, float, float] | None


@dataclass(frozen=True)
class Checked:
    """What came of a claim: whether it holds, what was measured, and where it fails."""

    holds: bool | None
    measured: str
    counterexamples: tuple[str, ...] = ()


def at_text(at: At) -> str:
    """A point in words: ``params=4, largest=1024``."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


def parse_conditions(at: Mapping[str, str]) -> dict[str, Condition]:
    """The conditions that restrict a claim, by variable."""
    return {name: parse_condition(text) for name, text in at.items()}


def meets(at: At, conditions: Mapping[str, Condition]) -> bool:
    """Whether a point satisfies every condition; a growth class selects no points."""
    return all(
        not isinstance(condition, Growth) and satisfied(condition, at[name], at)
        for name, condition in conditions.items()
    )


@contextmanager
def located(claim: str, line: int) -> Iterator[None]:
    """Turn an error in an expression into one of the ticket, with the ID of the claim and its line."""
    try:
        yield
    except ExpressionError as error:
        raise BadDataError(f"claim {claim}: {error.message}", line=line, hint=error.hint) from None


def decides_ending(metric: str, value: str, where: Mapping[str, str], at: At, ooms: int) -> bool:
    """Whether a claim applies to the exception that ended a run at a point: it allows it or is false.

    A growth class does neither, and a claim about ``ooms`` is about running out of memory alone.
    """
    # Running out of memory is an exception like others unless the claim counts failed allocations.
    if metric not in ENDINGS or (metric == "ooms" and not ooms):
        return False
    return not isinstance(parse_condition(value), Growth) and meets(at, parse_conditions(where))


def check_counts(
    metric: str, value: str, points: Sequence[At], counts: Sequence[int], sweep: Sequence[At]
) -> Checked:
    """A claim about a metric that was counted at ``points`` of a sweep, one at least."""
    condition, found = parse_condition(value), fit(points, counts, sweep, is_ending=metric in ENDINGS)
    # A law may be fitted to a part of the sweep; people must see that.
    covered = _coverage(len(points), len(sweep))
    if isinstance(condition, Growth):
        if found.law is None:
            return Checked(None, f"the sweep cannot tell: {found}{covered}")
        beyond = undominated(found.law, condition.expression)
        excess = f", in which {' and '.join(beyond)} is not bounded by the class" if beyond else ""
        return Checked(not beyond, found.law + excess + covered)
    measured = str(found) if min(counts) < max(counts) else span(counts)
    wrong = [
        f"{at_text(at)}: {count}"
        for at, count in zip(points, counts, strict=True)
        if not satisfied(condition, count, at)
    ]
    return Checked(not wrong, measured + covered, tuple(wrong))


def check_times(ratio: Ratio, timed: Sequence[TimedPoint], points: int, device: str) -> Checked:
    """A claim about time at some of the ``points`` of a sweep.

    It holds where all of each interval does, and is false where nothing of one does.
    """
    if not timed:
        return Checked(None, "not timed at any point of the claim")
    known = [(each, *each.interval) for each in timed if each.interval]
    measured = ""
    if known:
        least, most = (end(known, key=lambda each: each[1])[0] for end in (min, max))
        ends = f"{least.text} at {at_text(least.at)} .. {most.text} at {at_text(most.at)}"
        measured = least.text if len(known) == 1 else ends
    # One point that is surely wrong decides, however many are undecided.
    outcomes = [(each, ratio.outcome(low, high, each.at)) for each, _, low, high in known]
    wrong = tuple(f"{at_text(each.at)}: {each.text}" for each, outcome in outcomes if outcome is False)
    if wrong:
        return Checked(False, f"{measured}, on {device}", wrong)
    unknown = [f"{each.text} at {at_text(each.at)}" for each in timed if not each.interval]
    unknown += [
        f"undecided at {at_text(each.at)}: {each.text}" for each, outcome in outcomes if outcome is None
    ]
    if unknown:
        more = f" and at {len(unknown) - 1} more points" if len(unknown) > 1 else ""
        return Checked(None, f"{unknown[0]}{more}, on {device}")
    return Checked(True, f"{measured}{_coverage(len(timed), points)}, on {device}")


def check_results(compared: Sequence[tuple[At, str | None]], skipped: int) -> Checked:
    """A claim about equal results: each point with how they differ there, and at how many both raised."""
    beside = f", {skipped} skipped where it raised" if skipped else ""
    if not compared:
        return Checked(None, f"nothing could be compared{beside}")
    different = tuple(f"{at_text(at)}: {difference}" for at, difference in compared if difference is not None)
    equal = len(compared) - len(different)
    return Checked(not different, f"equal at {equal} of {len(compared)} points{beside}", different)


def _coverage(checked: int, points: int) -> str:
    """At how many points of the sweep a claim was checked, where that is not all of them."""
    return f", at {checked} of {points} points" if checked < points else ""


def undominated(law: str, growth: Expression) -> list[str]:
    """The terms of a law that a growth class does not dominate, as texts; none where it bounds the law.

    Only the exact law decides: any class bounds a finite number of samples. ``params*params`` dominates
    ``params`` and any constant. Variables are independent, even where one was nowhere larger than another.
    """
    bounds = [dict(bound) for bound in _monomials(growth)]
    return [
        _text(term)
        for term in _monomials(parse_expression(law))
        if not any(all(power <= bound.get(name, 0) for name, power in term) for bound in bounds)
    ]


def _monomials(expression: Expression) -> list[Monomial]:
    """The different products of variables in an expression, as far as its growth is concerned."""
    match expression:
        case Variable(name):
            found = [frozenset({(name, 1)})]
        case Binary("*", left, right):
            # Each is expanded on its own: of a product of sums, most terms are the same ones again.
            ones, others = ([Counter(dict(each)) for each in _monomials(side)] for side in (left, right))
            found = [frozenset((one + other).items()) for one in ones for other in others]
        case Binary("/", left, _):
            found = _monomials(left)
        case Binary(_, left, right):
            found = [*_monomials(left), *_monomials(right)]
        case Call("log2", (argument, *_)):
            found = [frozenset({(f"log2({_text(part)})", 1)}) for part in _monomials(argument)]
        case Number() | Call("min", _):
            # Laws contain `min(1, x)` alone, and classes no min at all.
            found = [frozenset()]
        case Call(_, arguments):
            found = [part for argument in arguments for part in _monomials(argument)]
    return list(dict.fromkeys(found))


def _text(monomial: Monomial) -> str:
    return "*".join(name for name, power in sorted(monomial) for _ in range(power)) or "1"
