"""What became better or worse in a ticket, and at which commit.

A commit is compared with its parents. Where nothing is known of one, what was known before it counts. A
change that a merge brings along belongs to the commits of the merged branch, if one of them changed what
the branch that it was merged into has. Otherwise the merge makes the change itself: its result is that of
no parent, or it undoes what had changed on the branch that it was merged into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.ground.checkouts import Checkouts
from finding_tickets.ground.git import CommitNode, GitError, ask, commits_since, shallow_commits
from finding_tickets.ground.objects import Objects, Snapshot
from finding_tickets.history.evidence_log import SHALLOW
from finding_tickets.history.store import ResultStore, UnmeasuredCommit, WhyUnmeasured
from finding_tickets.history.tickets_at_commits import NO_VERIFIER, RegisterAtCommits
from finding_tickets.history.walk import CommitWalk, Course, TicketInputs
from finding_tickets.measure.isolation import Isolation
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import BEST_FIRST, Verdict
from finding_tickets.register.index import hint_for, natural
from finding_tickets.verify.judge import DECIDING, FOUND
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import Settings, gpu_names

VERDICT = "verdict"
NOT_AS_CLAIMED = " (not as claimed)"
NO_LAW = "no law"
UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.UNVERIFIED, Verdict.STALE})
"""Verdicts that say nothing of the code."""

Points = tuple[Mapping[str, int], ...]


class Trend(StrEnum):
    """What a commit did to one of the things that are compared."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"


@dataclass(frozen=True)
class MetricResult:
    """What was measured of one metric of one variant about which something is claimed.

    ``law`` is the law, or what else is known in its place. ``outcomes`` says of each claim, by its ID,
    whether it came out as the ticket expects; None where it was not checked. ``values`` are those of runs
    that ended, at the ``points`` of the sweep.
    """

    variant: str
    metric: str
    law: str
    outcomes: Mapping[str, bool | None]
    points: Points = ()
    values: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The variant and the metric, as claims are called."""
        return f"{self.variant}.{self.metric}"

    @property
    def text(self) -> str:
        """The law; where there is none, the value at the last point tells results of the same range apart."""
        text = self.law
        if text.startswith(NO_LAW) and self.points:
            where = ", ".join(f"{name}={value}" for name, value in self.points[-1].items())
            text += f", {self.values[-1]} at {where}"
        return f"{text}{NOT_AS_CLAIMED}" if False in self.outcomes.values() else text

    def is_same(self, other: MetricResult) -> bool:
        """Whether cost, law and outcomes are the same; what is not counted has no law."""
        counted = bool(self.points or other.points)
        if counted and (self.law != other.law or self.growth_to(other)):
            return False
        return not (self.breaks_in(other) or other.breaks_in(self))

    def trend_to(self, after: MetricResult) -> Trend:
        """Less is better. Where less makes a claim about the code as found false, the defect is gone."""
        growth, broken = self.growth_to(after), self.breaks_in(after)
        if after.variant not in DECIDING:
            return Trend.CHANGE
        if growth < 0 and (after.variant == FOUND or not broken):
            return Trend.IMPROVEMENT
        if growth > 0 or broken:
            return Trend.REGRESSION
        return Trend.IMPROVEMENT if after.breaks_in(self) else Trend.CHANGE

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
    """The verdict on a ticket at a commit, with the metrics that it rests on."""

    verdict: Verdict
    reason: str
    metrics: tuple[MetricResult, ...] = ()

    @classmethod
    def of(cls, done: Verification) -> MeasuredState:
        """What is compared of a verification."""
        claims: dict[tuple[str, str], list[ClaimResult]] = {}
        for claim in done.claims if done.variants else ():
            claims.setdefault((claim.variant, claim.metric), []).append(claim)
        metrics = []
        for (variant, metric), made in claims.items():
            result = done.variants.get(variant)
            samples = [each for each in (result.samples if result else ()) if each.error is None]
            counted = [sample for sample in samples if metric in sample.metrics]
            law = "; ".join(dict.fromkeys(claim.measured for claim in made))
            if result and counted:
                law = result.laws.get(metric) or result.growth.get(metric) or NO_LAW
            outcomes = {each.id: None if each.holds is None else each.as_expected for each in made}
            points = tuple(sample.at for sample in counted)
            values = tuple(sample.metrics[metric] for sample in counted)
            metrics.append(MetricResult(variant, metric, law, outcomes, points, values))
        return cls(done.verdict, done.reason, tuple(metrics))

    @property
    def text(self) -> str:
        """The verdict."""
        return self.verdict

    def is_same(self, other: MeasuredState) -> bool:
        """Whether the verdict is the same."""
        return self.verdict == other.verdict

    def trend_to(self, after: MeasuredState) -> Trend:
        """A verdict that differs because the code as found got better or worse is neither itself."""
        for now in after.metrics:
            old = self.metric(now.name) if now.variant == FOUND else None
            growth = old.growth_to(now) if old else 0
            if old and ((growth < 0 and old.breaks_in(now)) or (growth > 0 and now.breaks_in(old))):
                return Trend.CHANGE
        worse = BEST_FIRST.index(after.verdict) > BEST_FIRST.index(self.verdict)
        return Trend.REGRESSION if worse else Trend.IMPROVEMENT

    def metric(self, name: str) -> MetricResult | None:
        """The result of ``variant.metric``."""
        return next((each for each in self.metrics if each.name == name), None)


C = TypeVar("C", MeasuredState, MetricResult)
"""What is compared from commit to commit: it has a text, ``is_same`` and ``trend_to``."""


@dataclass(frozen=True)
class TimelineStep:
    """A commit, by its place, at which something differs from before; ``before`` is None at the first.

    A regression is ``open`` where HEAD is still worse than what was ``before``, and it was not fixed before
    another one.
    """

    place: int
    before: str | None
    after: str
    trend: Trend | None = None
    is_open: bool = False


@dataclass(frozen=True)
class TimelineRow:
    """The verdict of a ticket, or one metric of a variant, through all commits.

    ``texts`` and ``values`` are what it was at each commit, as text and as a number at one point of the
    sweep; None where that is not known.
    """

    name: str
    texts: tuple[str | None, ...]
    steps: tuple[TimelineStep, ...]
    values: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """A ticket through commits: its rows, and for each commit why its verdict is not known.

    ``at`` is the point of the sweep that values are at; None where nothing is counted.
    """

    ticket: str
    rows: tuple[TimelineRow, ...]
    at: Mapping[str, int] | None
    gaps: tuple[UnmeasuredCommit | None, ...]
    measured: int

    @property
    def is_worse(self) -> bool:
        """Whether HEAD has an open regression."""
        return any(step.is_open for row in self.rows for step in row.steps)

    @property
    def is_known(self) -> bool:
        """Whether the verdict is known at any commit."""
        return not all(self.gaps)


@dataclass(frozen=True)
class MeasuredHistory:
    """Tickets through commits, the oldest commit first, and what of the history is not known."""

    nodes: tuple[CommitNode, ...]
    courses: tuple[Course, ...]
    gaps: tuple[str, ...]


def measure_history(
    settings: Settings, isolation: Isolation, since: str, ids: Iterable[str], tell: Callable[[str], None]
) -> MeasuredHistory:
    """Measure the tickets with these IDs at every commit from ``since`` to HEAD; by default all.

    ``tell`` is told of every measurement as soon as it is done. Results are kept and not measured again. No
    file of the repository is written.

    Raises:
        UsageError: There is no such revision or ticket, HEAD did not come from there, or there is no history.
        UnreachableError: Nothing can be measured.
    """
    root = settings.root
    try:
        nodes = commits_since(root, Checkouts(root).revision(since).commit)
        if not nodes:
            raise UsageError(f"--since {since}: not among the commits that led to HEAD")
        prefix = ask(root, "rev-parse", "--show-prefix").removesuffix("\n")
        with Objects(root) as objects:
            snapshots = [Snapshot(objects, node.tree, prefix) for node in nodes]
            register = RegisterAtCommits(root, objects, settings.meter, gpu_names(isolation, settings))
            courses, store = _courses(register, snapshots, ids), ResultStore()
            for course in courses:
                for snapshot, inputs in zip(snapshots, course.inputs, strict=True):
                    if isinstance(inputs, TicketInputs):
                        register.learn_evidence(course.ticket.casefold(), snapshot, inputs, store)

            def plan_at(course: Course, place: int, folder: Path) -> tuple[Document, Plan] | UnmeasuredCommit:
                snapshot = snapshots[place]
                document = register.document(snapshot, register.tickets(snapshot)[course.ticket.casefold()])
                todo = plan(document, folder, repository=root)
                if todo is None:
                    return NO_VERIFIER
                return (
                    UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why=todo.trouble)
                    if todo.trouble
                    else (document, todo)
                )

            def say(course: Course, place: int) -> None:
                result = course.found[place]
                what = result.why if isinstance(result, UnmeasuredCommit) else result.verdict
                tell(f"{course.ticket} at {nodes[place].commit.id[:10]}: {what}")

            CommitWalk([node.commit for node in nodes], snapshots, store, isolation, settings, say).run(
                courses, plan_at
            )
    except RevisionError as error:
        raise UsageError(f"--since {since}: {error}") from None
    except GitError as error:
        raise UsageError(f"cannot read git history: {error}", hint="commit something first") from None
    return MeasuredHistory(nodes, tuple(courses), (SHALLOW,) if shallow_commits(root) else ())


def _courses(register: RegisterAtCommits, snapshots: Sequence[Snapshot], ids: Iterable[str]) -> list[Course]:
    """The courses of the tickets with these IDs, or of all that had a verifier at any of the commits."""
    known: dict[str, str] = {}
    measurable: set[str] = set()
    for snapshot in snapshots:
        with suppress(BadDataError):
            for key, ticket in register.tickets(snapshot).items():
                known[key] = ticket.id
                if key not in measurable and ticket.verifier(snapshot):
                    measurable.add(key)
    wanted = list(dict.fromkeys(name.strip().casefold() for name in ids))
    for name in wanted:
        if name not in known:
            hint = hint_for(list(known.values()), name)
            raise UsageError(f"no document has the ID {name!r} at any of the commits", hint=hint)
    chosen = wanted or sorted(measurable, key=lambda name: natural(known[name]))
    return [
        Course(known[name], [register.inputs(name, snapshot) for snapshot in snapshots]) for name in chosen
    ]


def timeline(course: Course, nodes: Sequence[CommitNode]) -> Timeline:
    """What became of a ticket."""
    results = course.results
    states = [None if isinstance(each, UnmeasuredCommit) else MeasuredState.of(each) for each in results]
    known = [state if state and state.verdict not in UNDECIDED else None for state in states]
    is_gone = isinstance(results[-1], UnmeasuredCommit) and results[-1].kind is WhyUnmeasured.ABSENT
    rows = [_row(VERDICT, known, nodes, is_gone=is_gone)]
    metrics = [metric for state in states if state for metric in state.metrics]
    # Values are compared at the point of the newest sweep that most sweeps have; of several it is the last.
    sweeps = [metric.points for metric in metrics if metric.points]
    at = max(reversed(sweeps[-1]), key=lambda at: sum(at in sweep for sweep in sweeps)) if sweeps else None
    for name in dict.fromkeys(each.name for state in reversed(states) if state for each in state.metrics):
        of_name = [state.metric(name) if state else None for state in states]
        is_dropped = known[-1] is not None and of_name[-1] is None
        row = _row(name, of_name, nodes, is_gone=is_gone or is_dropped)
        rows.append(replace(row, values=tuple(each.value(at) if each else None for each in of_name)))
    gaps: list[UnmeasuredCommit | None] = []
    for result in results:
        if isinstance(result, UnmeasuredCommit):
            gaps.append(result)
        elif result.verdict in UNDECIDED:
            why = f"{result.verdict}: {result.reason}"
            gaps.append(UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why=why))
        else:
            gaps.append(None)
    return Timeline(course.ticket, tuple(rows), at, tuple(gaps), course.measured)


def _row(name: str, things: Sequence[C | None], nodes: Sequence[CommitNode], *, is_gone: bool) -> TimelineRow:
    """The row of things at commits; where they are gone from the last one, nothing is open."""
    known: dict[int, C] = {}
    changes: dict[int, tuple[C | None, C]] = {}
    for place, (thing, node) in enumerate(zip(things, nodes, strict=True)):
        parents = [parent for parent in node.parents if parent in known]
        if thing is None:
            if parents:
                known[place] = known[parents[0]]
            continue
        known[place] = thing
        if not parents:
            changes[place] = None, thing
        elif not _came_along(thing, parents, known, nodes, changes):
            changes[place] = known[parents[0]], thing
    still = set() if is_gone else _open(changes, known.get(len(nodes) - 1), nodes)
    steps = (
        TimelineStep(
            place,
            None if before is None else before.text,
            after.text,
            None if before is None else before.trend_to(after),
            place in still,
        )
        for place, (before, after) in changes.items()
    )
    return TimelineRow(name, tuple(None if thing is None else thing.text for thing in things), tuple(steps))


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
    if here.is_same(thing):
        return True
    # A branch that never had what is here, or got it by a merge, has made nothing of it.
    left = sum(
        1 << place for place, (before, _) in changes.items() if before is not None and before.is_same(here)
    )
    return any(
        known[parent].is_same(thing) and nodes[parent].ancestors & ~nodes[first].ancestors & left
        for parent in merged
    )


def _open(changes: Mapping[int, tuple[C | None, C]], last: C | None, nodes: Sequence[CommitNode]) -> set[int]:
    """The regressions that HEAD still has, without those that were fixed before a later one."""

    def is_worse(before: C | None, after: C | None) -> bool:
        if before is None or after is None or before.is_same(after):
            return False
        return before.trend_to(after) is Trend.REGRESSION

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
