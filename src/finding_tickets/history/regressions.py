"""What became better and what became worse in the course of a ticket, and at which commit.

A commit is compared with its parents. Where nothing is known of one, what was known before it counts. What a
merge brings along is put to the commits of the branch, where one of them changed what there is on the side
that it was merged into. Else the merge makes the change itself: it is none of its parents, or undoes what was
changed on that side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from finding_tickets.ground.commits import Node
from finding_tickets.history.states import NO_LAW, Gap, Kind, Line, Moment, State
from finding_tickets.history.survey import Course
from finding_tickets.model.verdict import BEST_FIRST
from finding_tickets.verify.verdict import DECIDING, FOUND

T = TypeVar("T")

VERDICT = "verdict"
NOT_AS_CLAIMED = " (not as claimed)"


class Turn(StrEnum):
    """What a commit did to one of the things that are compared."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"


@dataclass(frozen=True)
class Step:
    """A commit, by its place, at which something is another one than before; nothing was before the first.

    A regression is ``open`` where HEAD is still worse than what was ``before``, and it was not mended before
    another one.
    """

    place: int
    before: str | None
    after: str
    turn: Turn | None = None
    is_open: bool = False


@dataclass(frozen=True)
class Row:
    """The verdict of a ticket, or one metric of a variant, through all commits.

    ``texts`` and ``values`` are what it was at each commit, as text and as a number at one point of the
    sweep; None where that is not known.
    """

    name: str
    texts: tuple[str | None, ...]
    steps: tuple[Step, ...]
    values: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """A ticket through commits: its rows, and of each commit why nothing is known of its verdict.

    ``at`` is the point of the sweep that values are at; None where nothing is counted.
    """

    ticket: str
    rows: tuple[Row, ...]
    at: Mapping[str, int] | None
    gaps: tuple[Gap | None, ...]
    last: Moment
    measured: int

    @property
    def is_worse(self) -> bool:
        """Whether HEAD has a regression that is not mended."""
        return any(step.is_open for row in self.rows for step in row.steps)

    @property
    def is_known(self) -> bool:
        """Whether the verdict is known of any commit."""
        return not all(self.gaps)


def timeline(course: Course, nodes: Sequence[Node]) -> Timeline:
    """What became of a ticket."""
    states = [moment if isinstance(moment, State) else None for moment in course.moments]
    verdicts = [state if state and state.is_known else None for state in states]
    last = course.moments[-1]
    rows = [_row(VERDICT, verdicts, nodes, _verdict_of, is_gone=_is_gone(last))]
    names = dict.fromkeys(line.name for state in reversed(states) if state for line in state.lines)
    at = _most_common([line for state in states if state for line in state.lines])
    for name in names:
        lines = [_line(state, name) for state in states]
        row = _row(name, lines, nodes, _line_of, is_gone=_is_gone(last) or _is_dropped(last, name))
        rows.append(replace(row, values=tuple(_value(line, at) for line in lines)))
    gaps = tuple(map(_gap, course.moments))
    return Timeline(course.ticket, tuple(rows), at, gaps, last, course.measured)


@dataclass(frozen=True)
class _Kind(Generic[T]):
    """How the things of a row are told apart, named, and held against each other."""

    is_same: Callable[[T, T], bool]
    text: Callable[[T], str]
    turn: Callable[[T, T], Turn]


def _row(
    name: str, things: Sequence[T | None], nodes: Sequence[Node], kind: _Kind[T], *, is_gone: bool
) -> Row:
    """The row of things at commits; where they are gone from the last one, nothing is open."""
    known: dict[int, T] = {}
    found: dict[int, tuple[T | None, T]] = {}
    for place, (thing, node) in enumerate(zip(things, nodes, strict=True)):
        parents = [parent for parent in node.parents if parent in known]
        if thing is None:
            if parents:
                known[place] = known[parents[0]]
            continue
        known[place] = thing
        if not parents:
            found[place] = None, thing
        elif not _came_along(thing, parents, known, nodes, found, kind):
            found[place] = known[parents[0]], thing
    still = set() if is_gone else _open(found, known.get(len(nodes) - 1), nodes, kind)
    steps = (
        Step(
            place,
            None if before is None else kind.text(before),
            kind.text(after),
            None if before is None else kind.turn(before, after),
            place in still,
        )
        for place, (before, after) in found.items()
    )
    texts = tuple(None if thing is None else kind.text(thing) for thing in things)
    return Row(name, texts, tuple(steps))


def _came_along(
    thing: T,
    parents: Sequence[int],
    known: Mapping[int, T],
    nodes: Sequence[Node],
    found: Mapping[int, tuple[T | None, T]],
    kind: _Kind[T],
) -> bool:
    """Whether a commit is what the first of its parents was, or what a branch that it merged made of that."""
    first, *merged = parents
    here = known[first]
    if kind.is_same(here, thing):
        return True
    # A branch that never had what is here, or got it by a merge, has made nothing of it.
    left = sum(
        1 << place
        for place, (before, _) in found.items()
        if before is not None and kind.is_same(before, here)
    )
    return any(
        kind.is_same(known[parent], thing) and nodes[parent].ancestors & ~nodes[first].ancestors & left
        for parent in merged
    )


def _open(
    found: Mapping[int, tuple[T | None, T]], last: T | None, nodes: Sequence[Node], kind: _Kind[T]
) -> set[int]:
    """The regressions that HEAD still has, without those that were mended before a later one."""

    def is_worse(before: T | None, after: T | None) -> bool:
        if before is None or after is None or kind.is_same(before, after):
            return False
        return kind.turn(before, after) is Turn.REGRESSION

    def is_again(place: int, later: int) -> bool:
        came_after = later != place and nodes[later].ancestors >> place & 1
        return bool(came_after) and not is_worse(found[place][0], found[later][0])

    still = {
        place
        for place, (before, after) in found.items()
        if is_worse(before, after) and is_worse(before, last)
    }
    return {place for place in still if not any(is_again(place, later) for later in still)}


def _turn_of_verdict(before: State, after: State) -> Turn:
    """Where the code as found is no longer what it was, that is what became better or worse."""
    if any(_shows_in_found(before, line) for line in after.lines if line.variant == FOUND):
        return Turn.CHANGE
    worse = BEST_FIRST.index(after.verdict) > BEST_FIRST.index(before.verdict)
    return Turn.REGRESSION if worse else Turn.IMPROVEMENT


def _shows_in_found(before: State, line: Line) -> bool:
    old = _line(before, line.name)
    if old is None:
        return False
    growth = _growth(old, line)
    return (growth < 0 and _broken(old, line)) or (growth > 0 and _broken(line, old))


def _turn_of_line(before: Line, after: Line) -> Turn:
    """Less is better. A claim about the code as found that less made false says that the defect is gone."""
    growth = _growth(before, after)
    if after.variant not in DECIDING:
        return Turn.CHANGE
    if growth < 0 and (after.variant == FOUND or not _broken(before, after)):
        return Turn.IMPROVEMENT
    if growth > 0 or _broken(before, after):
        return Turn.REGRESSION
    return Turn.IMPROVEMENT if _broken(after, before) else Turn.CHANGE


def _broken(before: Line, after: Line) -> bool:
    """Whether a claim came out as expected before, and does not after."""
    return any(
        outcome is False and before.outcomes.get(claim) is True for claim, outcome in after.outcomes.items()
    )


def _growth(before: Line, after: Line) -> int:
    """How much more is counted at the last point that both sweeps have; 0 where there is none."""
    at = _common((before, after))
    old, new = _value(before, at), _value(after, at)
    return 0 if old is None or new is None else new - old


def _common(lines: Iterable[Line]) -> Mapping[str, int] | None:
    """The last point of the newest sweep that all sweeps have."""
    sweeps = [line.points for line in lines if line.points]
    if not sweeps:
        return None
    return next((at for at in reversed(sweeps[-1]) if all(at in sweep for sweep in sweeps)), None)


def _most_common(lines: Sequence[Line]) -> Mapping[str, int] | None:
    """The point of the newest sweep that most sweeps have, of several the last."""
    sweeps = [line.points for line in lines if line.points]
    if not sweeps:
        return None
    return max(reversed(sweeps[-1]), key=lambda at: sum(at in sweep for sweep in sweeps))


def _value(line: Line | None, at: Mapping[str, int] | None) -> int | None:
    if line is None or at is None or at not in line.points:
        return None
    return line.values[line.points.index(dict(at))]


def _line(state: State | None, name: str) -> Line | None:
    return next((line for line in state.lines if line.name == name), None) if state else None


def _is_gone(moment: Moment) -> bool:
    """Whether there is nothing to measure any more."""
    return isinstance(moment, Gap) and moment.kind is Kind.ABSENT


def _is_dropped(moment: Moment, name: str) -> bool:
    """Whether nothing is claimed any more of a metric of a variant."""
    return isinstance(moment, State) and moment.is_known and _line(moment, name) is None


def _is_same_line(one: Line, other: Line) -> bool:
    """Whether cost and law are the same and no claim came out otherwise; what is not counted has no law."""
    counted = bool(one.points or other.points)
    if counted and (one.law != other.law or _growth(one, other)):
        return False
    return not (_broken(one, other) or _broken(other, one))


def _text_of_line(line: Line) -> str:
    text = line.law
    if text.startswith(NO_LAW) and line.points:
        # The range alone would not tell two of them apart.
        where = ", ".join(f"{name}={value}" for name, value in line.points[-1].items())
        text += f", {line.values[-1]} at {where}"
    surprise = any(outcome is False for outcome in line.outcomes.values())
    return f"{text}{NOT_AS_CLAIMED}" if surprise else text


def _gap(moment: Moment) -> Gap | None:
    if isinstance(moment, Gap):
        return moment
    return None if moment.is_known else Gap(kind=Kind.UNKNOWN, why=f"{moment.verdict}: {moment.reason}")


_verdict_of = _Kind[State](
    is_same=lambda one, other: one.verdict == other.verdict,
    text=lambda state: state.verdict,
    turn=_turn_of_verdict,
)
_line_of = _Kind[Line](
    is_same=_is_same_line,
    text=_text_of_line,
    turn=_turn_of_line,
)
