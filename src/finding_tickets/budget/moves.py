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
from typing import NamedTuple

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
Points = Sequence[Mapping[str, int]]
Placed = Allowance | Spender
"""A statement, or the allowance for one."""


class Likeness(IntEnum):
    """How much a statement is like one that is gone."""

    NONE = 0
    # In a function that calls that of the other one, or is called there, and does what it did; or in the same
    # function, where both test a value, or select by one.
    RELATED = 1
    REWRITTEN = 2  # in the same function, and does what it did
    RENAMED = 3  # in the same function, the same but for names of variables, constants and hints
    MOVED = 4  # the same text


@dataclass(frozen=True)
class Move:
    """A statement and the gone allowances that pay for it, the one most like it first."""

    spender: Spender
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


class _Payer(NamedTuple):
    """A gone allowance that may pay for what a statement spends of some metrics; the best come first."""

    rank: tuple[object, ...]
    likeness: Likeness
    spender: Spender
    allowance: Allowance
    kinds: tuple[str, ...]


def find_moves(
    gone: Sequence[Allowance],
    spenders: Mapping[Spender, Spent],
    points: Points,
    is_for: Callable[[Allowance, str], bool],
    metrics: Collection[str],
    root: Path,
) -> list[Move]:
    """The statements among ``spenders`` that gone allowances pay for; their code is in the folder ``root``.

    ``metrics`` are those that are looked at; ``is_for`` tells whether an allowance is for one.
    """
    pairs = []
    for spender, spent in spenders.items():
        for allowance in gone:
            kinds = tuple(each for each in metrics if is_for(allowance, each) and any(spent.get(each, ())))
            alike = likeness(allowance, spender, root) if kinds else Likeness.NONE
            if alike:
                law = _law_at(allowance, points)
                misfit = sum(abs(a - b) for each in kinds for a, b in zip(law, spent[each], strict=False))
                rank = (-alike, spender.file != allowance.file, misfit, spender)
                pairs.append(_Payer(rank, alike, spender, allowance, kinds))
    pairs.sort(key=lambda each: each.rank)
    wanted = [each for each in spenders if any(pair.spender == each for pair in pairs)]
    while wanted:
        paid, missing = _pay([each for each in pairs if each.spender in wanted], spenders, points)
        if not missing:
            return [
                Move(each, tuple(pair.allowance for pair in paid[each]), paid[each][0].likeness)
                for each in wanted
            ]
        # What cannot be paid for leaves the others what it would have taken.
        wanted.remove(max(missing, key=lambda each: missing[each]))
    return []


def _law_at(allowance: Allowance, points: Points) -> list[int]:
    """The most that the law of an allowance allows at each point; nothing for one without a law."""
    return [max(bound(allowance.law, at), 0) for at in points] if allowance.law else []


def _pay(
    pairs: Sequence[_Payer], spenders: Mapping[Spender, Spent], points: Points
) -> tuple[dict[Spender, list[_Payer]], dict[Spender, int]]:
    """By whom each statement is paid for, the one most like it first; and what is missing of the others."""
    needs: dict[Spender, dict[str, list[int]]] = {}
    for each in pairs:
        of_it = needs.setdefault(each.spender, {})
        of_it.update({kind: [*spenders[each.spender][kind]] for kind in each.kinds})
    rooms: dict[tuple[Allowance, str], list[int]] = {}
    paid: dict[Spender, list[_Payer]] = {each: [] for each in needs}
    used: set[Allowance] = set()
    for each in pairs:
        of_it = needs[each.spender]
        open_kinds = [kind for kind in each.kinds if any(of_it[kind])]
        if not open_kinds or each.allowance in used:
            continue
        given = 0
        for kind in open_kinds:
            need = of_it[kind]
            # Without a law nobody knows how much it stood for: it pays for one statement.
            law = _law_at(each.allowance, points)
            room = rooms.setdefault((each.allowance, kind), law) if law else [*need]
            for place, amount in enumerate([*map(min, need, room)]):
                need[place] -= amount
                room[place] -= amount
                given += amount
        if not each.allowance.law:
            used.add(each.allowance)
        if given:
            paid[each.spender].append(each)
    missing = {spender: sum(map(sum, of_it.values())) for spender, of_it in needs.items()}
    return paid, {spender: amount for spender, amount in missing.items() if amount}
