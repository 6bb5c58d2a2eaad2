"""What became of allowed statements that are no more where an allowance says.

A statement may be moved, renamed, rewritten, split in two, joined with another one, or put into a helper that
several places call. So an allowance whose statement is gone pays for statements that nothing allows, if they
are like it and spend what it is for. What all of them spend is within its law; without one it pays for one
statement. Several gone allowances may pay for one statement, which is paid for wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import floor
from pathlib import Path
from typing import Protocol

from finding_tickets.budget.spending import Spender
from finding_tickets.budget.statements import (
    READS,
    is_name,
    normal,
    operations_of,
    read_code,
    shape_of,
    statements_of,
)
from finding_tickets.claims.language import evaluate, parse_expression
from finding_tickets.register.budgets import Allowance

Values = tuple[int, ...]
Spent = Mapping[str, Values]
_Amounts = dict[str, list[int]]


class Likeness(IntEnum):
    """How much a statement is like one that is gone."""

    NONE = 0
    # In a function that calls that of the other one, or is called there, and does what it did; or in the same
    # function, where both test a value, or select by one.
    RELATED = 1
    REWRITTEN = 2  # in the same function, and does what it did
    RENAMED = 3  # in the same function, the same but for names of variables, constants and hints
    MOVED = 4  # the same text


class Placed(Protocol):
    """A statement, or the allowance for one."""

    @property
    def file(self) -> str:
        """Where it is."""

    @property
    def function(self) -> str:
        """The function that it is in."""

    @property
    def text(self) -> str:
        """The statement."""


@dataclass(frozen=True)
class Move:
    """A statement and the gone allowances that pay for it, the one most like it first."""

    spender: Spender
    spent: Spent
    paid_by: tuple[Allowance, ...]
    likeness: Likeness


def likeness(gone: Placed, now: Placed, root: Path) -> Likeness:
    """How much a statement in the folder ``root`` is like one that is gone."""
    if not gone.text or not now.text:
        return Likeness.NONE
    before, after = normal(gone.text), normal(now.text)
    if before == after:
        return Likeness.MOVED
    same_shape, shared = shape_of(before) == shape_of(after), operations_of(before) & operations_of(after)
    # Any two statements may have a test or a subscript.
    is_like = same_shape or any(map(is_name, shared))
    if (gone.file, gone.function) == (now.file, now.function):
        if is_like or not shared:
            return Likeness.RENAMED if same_shape else Likeness.REWRITTEN if shared else Likeness.NONE
        return Likeness.NONE if READS & operations_of(after) - operations_of(before) else Likeness.RELATED
    return Likeness.RELATED if is_like and _are_neighbours(gone, now, root) else Likeness.NONE


def _are_neighbours(gone: Placed, now: Placed, root: Path) -> bool:
    """Whether one function calls the other by its name, or the one of the gone statement is gone, too."""
    calls = _calls(root, gone.file, gone.function)
    return calls is None or _name(now) in calls or _name(gone) in (_calls(root, now.file, now.function) or ())


def _calls(root: Path, file: str, function: str) -> frozenset[str] | None:
    """What a function calls; None where there is no such function."""
    found = statements_of(read_code(root / file))
    inside = [operations_of(each.text) for each in found if f"{each.function}.".startswith(f"{function}.")]
    return frozenset().union(*inside) if inside else None


def _name(placed: Placed) -> str:
    """The name by which a function is called: the class's for its constructor."""
    *around, name = placed.function.split(".")
    return around[-1] if around and name == "__init__" else name


def bound(law: str, at: Mapping[str, int]) -> int:
    """The most that a law allows at a point."""
    return floor(evaluate(parse_expression(law), at))


def find_moves(
    gone: Sequence[Allowance],
    spenders: Collection[tuple[Spender, Spent]],
    points: Sequence[Mapping[str, int]],
    is_for: Callable[[Allowance, str], bool],
    metrics: Collection[str],
    root: Path,
) -> tuple[Move, ...]:
    """The statements among ``spenders`` that gone allowances pay for; their code is in the folder ``root``.

    ``metrics`` are those that are looked at; ``is_for`` tells whether an allowance is for one.
    """
    pairs = []
    for place, (spender, spent) in enumerate(spenders):
        for allowance in gone:
            kinds = [each for each in metrics if is_for(allowance, each) and any(spent.get(each, ()))]
            alike = likeness(allowance, spender, root) if kinds else Likeness.NONE
            if alike:
                misfit = sum(
                    abs(bound(allowance.law, at) - spent[each][number])
                    for each in kinds
                    for number, at in enumerate(points)
                    if allowance.law
                )
                rank = (-alike, spender.file != allowance.file, misfit, spender)
                pairs.append((rank, place, allowance, kinds))
    pairs.sort(key=lambda each: each[0])
    wanted = {place for _, place, _, _ in pairs}
    everyone = tuple(spenders)
    while wanted:
        paid, missing = _paid(pairs, wanted, everyone, points)
        if not missing:
            return tuple(
                Move(*everyone[place], tuple(allowance for allowance, _ in by), by[0][1])
                for place, by in paid.items()
            )
        # What cannot be paid for leaves the others what it would have taken.
        wanted.remove(max(missing, key=lambda place: missing[place]))
    return ()


_Pairs = Sequence[tuple[tuple[object, ...], int, Allowance, Sequence[str]]]
_Paid = dict[int, list[tuple[Allowance, Likeness]]]


def _paid(
    pairs: _Pairs,
    wanted: Collection[int],
    spenders: Sequence[tuple[Spender, Spent]],
    points: Sequence[Mapping[str, int]],
) -> tuple[_Paid, dict[int, int]]:
    """By whom each statement is paid for, the one most like it first; and what is missing of the others."""
    needs: dict[int, _Amounts] = {place: {} for place in wanted}
    for _, place, _, kinds in pairs:
        if place in wanted:
            needs[place] |= {each: list(spenders[place][1][each]) for each in kinds}
    rooms: dict[int, _Amounts] = {}
    paid: _Paid = {place: [] for place in wanted}
    used: set[int] = set()
    for rank, place, allowance, kinds in pairs:
        open_needs = [each for each in kinds if place in wanted and any(needs[place][each])]
        if not open_needs or id(allowance) in used:
            continue
        if allowance.law:
            law = [max(bound(allowance.law, at), 0) for at in points]
            room = rooms.setdefault(id(allowance), {})
            given = sum(_take(needs[place][each], room.setdefault(each, list(law))) for each in open_needs)
        else:
            # Without a law nobody knows how much it stood for: it pays for one statement.
            used.add(id(allowance))
            given = sum(_take(needs[place][each], list(needs[place][each])) for each in open_needs)
        if given:
            paid[place].append((allowance, Likeness(-rank[0])))  # type: ignore[operator]  # it is a likeness
    missing = {place: sum(map(sum, of.values())) for place, of in needs.items()}
    return paid, {place: amount for place, amount in missing.items() if amount}


def _take(need: list[int], room: list[int]) -> int:
    """Pay a need at each point, as far as there is room."""
    given = [min(wanted, there) for wanted, there in zip(need, room, strict=True)]
    for place, amount in enumerate(given):
        need[place] -= amount
        room[place] -= amount
    return sum(given)
