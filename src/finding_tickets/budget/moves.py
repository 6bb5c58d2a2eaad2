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
    # One function calls the other by its name, or the one of the gone statement is gone, too.
    there, here = _calls(root, gone.file, gone.function), _calls(root, now.file, now.function) or ()
    is_near = is_like and (there is None or _name(now) in there or _name(gone) in here)
    return Likeness.RELATED if is_near else Likeness.NONE


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
    laws = {each: [max(bound(each.law, at), 0) for at in points] for each in gone if each.law}
    payers: dict[Spender, list[_Payer]] = {}
    for spender, spent in spenders.items():
        for allowance in gone:
            kinds = tuple(each for each in metrics if is_for(allowance, each) and any(spent.get(each, ())))
            if kinds and (alike := likeness(allowance, spender, root)):
                law = laws.get(allowance, ())
                misfit = sum(abs(a - b) for each in kinds for a, b in zip(law, spent[each], strict=False))
                rank = (-alike, spender.file != allowance.file, misfit, spender)
                payers.setdefault(spender, []).append(_Payer(rank, alike, allowance, kinds))
    for several in payers.values():
        several.sort(key=lambda each: each.rank)
    # What is left of each law. Without a law an allowance pays for one statement.
    rooms = {(each, kind): law for each, law in laws.items() for kind in metrics}
    used: set[Allowance] = set()
    moves: dict[Spender, Move] = {}
    for spender in sorted(payers, key=lambda each: payers[each][0].rank):
        open_ones = [each for each in payers[spender] if each.allowance not in used]
        needs = {kind: [*spenders[spender][kind]] for each in payers[spender] for kind in each.kinds}
        left, paid_by = dict(rooms), []
        for each in open_ones:
            given = 0
            for kind in each.kinds:
                need, room = needs[kind], left.get((each.allowance, kind), needs[kind])
                amounts = [*map(min, need, room)]
                needs[kind] = [a - b for a, b in zip(need, amounts, strict=True)]
                left[each.allowance, kind] = [a - b for a, b in zip(room, amounts, strict=True)]
                given += sum(amounts)
            paid_by += [each] if given else []
        # What cannot be paid for wholly leaves the others what it would have taken.
        if not any(map(any, needs.values())):
            rooms = {key: left[key] for key in rooms}
            used |= {each.allowance for each in paid_by if not each.allowance.law}
            moves[spender] = Move(spender, tuple(each.allowance for each in paid_by), paid_by[0].likeness)
    return [moves[each] for each in spenders if each in moves]
