"""What became better or worse in a ticket, and at which commit.

A commit is compared with its parents. Where nothing is known of one, what was known before it counts. A
change that a merge brings along belongs to the commits of the merged branch, if one of them changed what
the branch that it was merged into has. Otherwise the merge makes the change itself: its result is that of
no parent, or it undoes what had changed on the branch that it was merged into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from finding_tickets.ground.git import CommitNode
from finding_tickets.history.walk import Course, UnmeasuredCommit, WhyUnmeasured
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import BEST_FIRST, Verdict
from finding_tickets.verify.judge import DECIDING, FOUND

VERDICT = "verdict"
NOT_AS_CLAIMED = " (not as claimed)"
NO_LAW = "no law"
# Verdicts that say nothing of the code.
UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.UNVERIFIED, Verdict.STALE})

Points = tuple[Mapping[str, int], ...]


class Trend(StrEnum):
    """What a commit did to one of the things that are compared."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"


@dataclass(frozen=True)
class MetricResult:
    """What was measured of one metric of one variant about which something is claimed."""

    variant: str
    metric: str
    law: str  # or what else is known in its place
    outcomes: Mapping[str, bool | None]  # by claim, whether it is as expected; None where it was not checked
    points: Points = ()  # of the sweep, at which runs ended
    values: tuple[int, ...] = ()  # at these points

    @property
    def text(self) -> str:
        """The law; where there is none, the value at the last point tells results of the same range apart."""
        text = self.law
        if text.startswith(NO_LAW) and self.points:
            where = ", ".join(f"{name}={value}" for name, value in self.points[-1].items())
            text += f", {self.values[-1]} at {where}"
        return f"{text}{NOT_AS_CLAIMED}" if False in self.outcomes.values() else text

    def trend_to(self, after: MetricResult) -> Trend | None:
        """Less is better; None where cost, law and outcomes are the same.

        Where less makes a claim about the code as found false, the defect is gone.
        """
        growth, broken, mended = self.growth_to(after), self.breaks_in(after), after.breaks_in(self)
        # What is not counted has no law, and its text may change with every run.
        is_other_law = bool(self.points or after.points) and self.law != after.law
        if not (growth or broken or mended or is_other_law):
            return None
        if after.variant not in DECIDING:
            return Trend.CHANGE
        if growth < 0 and (after.variant == FOUND or not broken):
            return Trend.IMPROVEMENT
        if growth > 0 or broken:
            return Trend.REGRESSION
        return Trend.IMPROVEMENT if mended else Trend.CHANGE

    def growth_to(self, after: MetricResult) -> int:
        """How much more is counted at the last point that both sweeps have; 0 where there is none."""
        at = next((at for at in reversed(after.points) if at in self.points), None)
        old, new = self.value(at), after.value(at)
        return 0 if old is None or new is None else new - old

    def breaks_in(self, after: MetricResult) -> bool:
        """Whether a claim came out as expected here, and does not afterwards."""
        broken = (claim for claim, outcome in after.outcomes.items() if outcome is False)
        return any(self.outcomes.get(claim) is True for claim in broken)

    def value(self, at: Mapping[str, int] | None) -> int | None:
        """The value at a point of the sweep; None where it has none."""
        return self.values[self.points.index(at)] if at is not None and at in self.points else None


@dataclass(frozen=True)
class MeasuredState:
    """The verdict on a ticket at a commit, with the metrics that it rests on, by ``variant.metric``."""

    verdict: Verdict
    metrics: Mapping[str, MetricResult]

    @classmethod
    def of(cls, done: Verification) -> MeasuredState:
        """What is compared of a verification."""
        claims: dict[tuple[str, str], list[ClaimResult]] = {}
        for claim in done.claims if done.variants else ():
            claims.setdefault((claim.variant, claim.metric), []).append(claim)
        metrics = {}
        for (variant, metric), made in claims.items():
            result = done.variants.get(variant)
            counted = [
                sample
                for sample in (result.samples if result else ())
                if sample.error is None and metric in sample.metrics
            ]
            law = "; ".join(dict.fromkeys(claim.measured for claim in made))
            if result and counted:
                law = result.laws.get(metric) or result.growth.get(metric) or NO_LAW
            metrics[f"{variant}.{metric}"] = MetricResult(
                variant,
                metric,
                law,
                {each.id: None if each.holds is None else each.as_expected for each in made},
                tuple(sample.at for sample in counted),
                tuple(sample.metrics[metric] for sample in counted),
            )
        return cls(done.verdict, metrics)

    @property
    def text(self) -> str:
        """The verdict."""
        return self.verdict

    def trend_to(self, after: MeasuredState) -> Trend | None:
        """Whether the verdict is better or worse; None where it is the same.

        One that differs because the code as found got better or worse is neither itself.
        """
        if self.verdict == after.verdict:
            return None
        for name, now in after.metrics.items():
            old = self.metrics.get(name) if now.variant == FOUND else None
            growth = old.growth_to(now) if old else 0
            if old and ((growth < 0 and old.breaks_in(now)) or (growth > 0 and now.breaks_in(old))):
                return Trend.CHANGE
        worse = BEST_FIRST.index(after.verdict) > BEST_FIRST.index(self.verdict)
        return Trend.REGRESSION if worse else Trend.IMPROVEMENT


# What is compared from commit to commit: it has a text and ``trend_to``.
C = TypeVar("C", MeasuredState, MetricResult)


@dataclass(frozen=True)
class TimelineStep:
    """A commit, by its place, at which something differs from before."""

    place: int
    before: str | None  # None at the first
    after: str
    trend: Trend | None = None
    # Of a regression: whether HEAD is still worse than ``before``, and it was not fixed before another one.
    is_open: bool = False


@dataclass(frozen=True)
class TimelineRow:
    """The verdict of a ticket, or one metric of a variant, through all commits."""

    name: str
    texts: tuple[str | None, ...]  # what it was at each commit; None where that is not known
    steps: tuple[TimelineStep, ...]
    values: tuple[int | None, ...] = ()  # the same as numbers, at one point of the sweep


@dataclass(frozen=True)
class Timeline:
    """A ticket through commits."""

    ticket: str
    rows: tuple[TimelineRow, ...]
    at: Mapping[str, int] | None  # the point that values are at; None where nothing is counted
    gaps: tuple[UnmeasuredCommit | None, ...]  # why the verdict at a commit is not known
    measured: int  # how many commits were measured now

    @property
    def is_worse(self) -> bool:
        """Whether HEAD has an open regression."""
        return any(step.is_open for row in self.rows for step in row.steps)

    @property
    def is_known(self) -> bool:
        """Whether the verdict is known at any commit."""
        return not all(self.gaps)


def timeline(course: Course, nodes: Sequence[CommitNode]) -> Timeline:
    """What became of a ticket."""
    results = course.results
    states: list[MeasuredState | None] = []
    gaps: list[UnmeasuredCommit | None] = []
    for result in results:
        if isinstance(result, UnmeasuredCommit):
            states.append(None)
            gaps.append(result)
            continue
        why = f"{result.verdict}: {result.reason}" if result.verdict in UNDECIDED else None
        states.append(MeasuredState.of(result))
        gaps.append(UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why=why) if why else None)
    known = [None if gap else state for gap, state in zip(gaps, states, strict=True)]
    is_gone = isinstance(results[-1], UnmeasuredCommit) and results[-1].kind is WhyUnmeasured.ABSENT
    rows = [_row(VERDICT, known, nodes, is_gone=is_gone)]
    # Values are compared at the point of the newest sweep that most sweeps have; of several it is the last.
    sweeps = [each.points for state in states if state for each in state.metrics.values() if each.points]
    at = max(reversed(sweeps[-1]), key=lambda at: sum(at in sweep for sweep in sweeps)) if sweeps else None
    for name in dict.fromkeys(name for state in reversed(states) if state for name in state.metrics):
        of_name = [state.metrics.get(name) if state else None for state in states]
        is_dropped = known[-1] is not None and of_name[-1] is None
        row = _row(name, of_name, nodes, is_gone=is_gone or is_dropped)
        rows.append(replace(row, values=tuple(each.value(at) if each else None for each in of_name)))
    return Timeline(course.ticket, tuple(rows), at, tuple(gaps), course.measured)


def _row(name: str, things: Sequence[C | None], nodes: Sequence[CommitNode], *, is_gone: bool) -> TimelineRow:
    """The row of things at commits; where they are gone from the last one, nothing is open."""
    known: dict[int, C] = {}
    changes: dict[int, tuple[C | None, C]] = {}
    for place, (thing, node) in enumerate(zip(things, nodes, strict=True)):
        parents = [parent for parent in node.parents if parent in known]
        before = known[parents[0]] if parents else None
        after = before if thing is None else thing
        if after is None:
            continue
        known[place] = after
        if before is None or not _came_along(after, parents, known, nodes, changes):
            changes[place] = before, after
    still = set() if is_gone else _open(changes, known.get(len(nodes) - 1), nodes)
    steps = []
    for place, (before, after) in changes.items():
        old, trend = (before.text, before.trend_to(after)) if before else (None, None)
        steps.append(TimelineStep(place, old, after.text, trend, place in still))
    return TimelineRow(name, tuple(thing.text if thing else None for thing in things), tuple(steps))


def _came_along(
    thing: C,
    parents: Sequence[int],
    known: Mapping[int, C],
    nodes: Sequence[CommitNode],
    changes: Mapping[int, tuple[C | None, C]],
) -> bool:
    """Whether a commit is what the first of its parents was, or what a branch that it merged made of that."""
    first, *merged = parents
    here = known[first]
    if here.trend_to(thing) is None:
        return True
    # A branch that never had what is here, or got it by a merge, has made nothing of it.
    left = sum(1 << place for place, (before, _) in changes.items() if before and not before.trend_to(here))
    return any(
        known[parent].trend_to(thing) is None and nodes[parent].ancestors & ~nodes[first].ancestors & left
        for parent in merged
    )


def _open(changes: Mapping[int, tuple[C | None, C]], last: C | None, nodes: Sequence[CommitNode]) -> set[int]:
    """The regressions that HEAD still has, without those that were fixed before a later one."""

    def is_worse(before: C | None, after: C | None) -> bool:
        return before is not None and after is not None and before.trend_to(after) is Trend.REGRESSION

    still = {
        place
        for place, (before, after) in changes.items()
        if is_worse(before, after) and is_worse(before, last)
    }
    return {
        place
        for place in still
        # A later one is the same regression again, unless it made worse what this one had left.
        if not any(
            later != place
            and nodes[later].ancestors >> place & 1
            and not is_worse(changes[place][0], changes[later][0])
            for later in still
        )
    }
