"""Better and worse over commits: what is compared with what, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from finding_tickets.ground.git import Commit, CommitNode
from finding_tickets.history.timeline import VERDICT, MetricResult, Timeline, TimelineStep, Trend, timeline
from finding_tickets.history.walk import CommitResult, Course, UnmeasuredCommit, WhyUnmeasured
from finding_tickets.model.verification import ClaimResult, Sample, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict

N = ({"n": 1}, {"n": 2}, {"n": 5})
ABSENT = UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why="there is no such ticket")
COSTS = {"1": (1, 1, 1), "2": (2, 2, 2), "n": (1, 2, 5), "2*n": (2, 4, 10)}
"""The values of laws at the points of ``N``."""


def line(
    law: str,
    holds: bool | None = True,
    *,
    name: str = "fix.syncs",
    points: Sequence[Mapping[str, int]] = N,
    values: Sequence[int] | None = None,
) -> MetricResult:
    """What one metric of a variant was, with one claim."""
    variant, _, metric = name.partition(".")
    found = tuple(COSTS[law] if values is None else values)
    return MetricResult(variant, metric, law, {name: holds}, tuple(dict(point) for point in points), found)


def state(verdict: Verdict, *lines: MetricResult) -> Verification:
    """What one measurement was."""
    return Verification(
        ticket="A-1",
        verdict=verdict,
        reason="so",
        meter="simulated",
        torch="2",
        device="h200",
        sweep=(),
        variants={
            each.variant: VariantResult(
                laws={} if each.law.startswith("no law") else {each.metric: each.law},
                growth={each.metric: each.law} if each.law.startswith("no law") else {},
                samples=tuple(
                    Sample(at=dict(at), metrics={each.metric: value})
                    for at, value in zip(each.points, each.values, strict=False)
                ),
                sites=(),
            )
            for each in lines
        },
        claims=tuple(
            ClaimResult(
                id=name,
                variant=each.variant,
                metric=each.metric,
                claimed="1",
                measured=each.law,
                holds=holds,
                expect="holds",
            )
            for each in lines
            for name, holds in each.outcomes.items()
        ),
    )


def fixed(law: str = "1", *, holds: bool = True) -> Verification:
    """A measurement of a ticket whose fix has this law."""
    return state(Verdict.VERIFIED if holds else Verdict.FAILED, line(law, holds))


def nodes(*parents: tuple[int, ...]) -> list[CommitNode]:
    """Commits with the places of their parents."""
    made: list[CommitNode] = []
    for place, before in enumerate(parents):
        mask = 1 << place
        for parent in before:
            mask |= made[parent].ancestors
        made.append(CommitNode(Commit(str(place), "2026-01-01", "Ada", "so"), "tree", before, mask))
    return made


def in_line(number: int) -> list[CommitNode]:
    """Commits one after the other."""
    return nodes(*((place - 1,) if place else () for place in range(number)))


def course(moments: Sequence[CommitResult], commits: Sequence[CommitNode] | None = None) -> Timeline:
    """What became of a ticket, by default one commit after the other."""
    return timeline(Course("A-1", (), dict(enumerate(moments))), commits or in_line(len(moments)))


def steps(found: Timeline, name: str = "fix.syncs") -> list[tuple[object, ...]]:
    """Place, before, after and turn of each change of a row."""
    (row,) = (row for row in found.rows if row.name == name)
    return [(step.place, step.before, step.after, step.trend) for step in row.steps if step.trend]


def opened(found: Timeline, name: str = "fix.syncs") -> list[bool]:
    """Whether each regression of a row is open."""
    (row,) = (row for row in found.rows if row.name == name)
    return [step.is_open for step in row.steps if step.trend is Trend.REGRESSION]


def test_a_regression_is_open_until_it_is_mended() -> None:
    """The verdict and the law, at the commits that changed them; what stays is no step."""
    found = course([fixed(), fixed(), fixed("n", holds=False), fixed("n", holds=False)])
    assert [(2, "1", "n (not as claimed)", Trend.REGRESSION)] == steps(found)
    assert [(2, "verified", "failed", Trend.REGRESSION)] == steps(found, VERDICT)
    assert found.is_worse
    mended = course([fixed(), fixed("n", holds=False), fixed()])
    assert [Trend.REGRESSION, Trend.IMPROVEMENT] == [step[3] for step in steps(mended)]
    assert not mended.is_worse


def test_of_one_that_came_again_the_last_time_is_open() -> None:
    """The first one was mended; two that came one upon the other are both there still."""
    bad, worse = fixed("n", holds=False), fixed("2*n", holds=False)
    assert [False, True] == opened(course([fixed(), bad, fixed(), bad]))
    assert [True, True] == opened(course([fixed(), bad, worse, worse]))
    assert [True, False, True] == opened(course([fixed(), bad, worse, bad, worse]))


def test_one_that_was_mended_on_a_side_that_a_merge_left_behind_is_open() -> None:
    """1 brings it, 2 is main, 3 mends it on a branch of 1, and 4 keeps what main has."""
    bad = fixed("n", holds=False)
    found = course([fixed(), bad, bad, fixed(), bad], nodes((), (0,), (1,), (1,), (2, 3)))
    assert ([True], True) == (opened(found), found.is_worse)


def test_half_a_mend_leaves_it_open() -> None:
    """From 1 to 2*n and back to n is worse than 1."""
    found = course([fixed(), fixed("2*n", holds=False), fixed("n", holds=False)])
    assert [Trend.REGRESSION, Trend.IMPROVEMENT] == [step[3] for step in steps(found)]
    assert found.is_worse


def test_a_law_that_grew_is_a_regression_though_every_claim_holds() -> None:
    """Also where the claim was made looser for it; at the last point that both sweeps have."""
    assert [(1, "1", "n", Trend.REGRESSION)] == steps(course([fixed(), fixed("n")]))
    other = state(Verdict.VERIFIED, line("n", points=({"n": 1}, {"n": 7}), values=(1, 7)))
    # The only point of both is n=1, where both cost 1.
    assert [(1, "1", "n", Trend.CHANGE)] == steps(course([fixed(), other]))
    elsewhere = state(Verdict.VERIFIED, line("n", points=({"n": 7},), values=(7,)))
    assert [(1, "1", "n", Trend.CHANGE)] == steps(course([fixed(), elsewhere]))


def test_a_claim_that_was_edited_to_be_false_is_a_regression() -> None:
    """The law is what it was."""
    assert [(1, "1", "1 (not as claimed)", Trend.REGRESSION)] == steps(course([fixed(), fixed(holds=False)]))


@pytest.mark.parametrize(
    ("before", "after", "line_turn", "verdict_turn"),
    [
        (("n", True), ("1", False), Trend.IMPROVEMENT, Trend.CHANGE),
        (("1", False), ("n", True), Trend.REGRESSION, Trend.CHANGE),
        (("n", True), ("2*n", False), Trend.REGRESSION, Trend.REGRESSION),
        (("n", True), ("n", False), Trend.REGRESSION, Trend.REGRESSION),
        (("n", False), ("n", True), Trend.IMPROVEMENT, Trend.IMPROVEMENT),
    ],
)
def test_code_as_found_that_costs_less_is_no_regression(
    before: tuple[str, bool], after: tuple[str, bool], line_turn: Trend, verdict_turn: Trend
) -> None:
    """Its claims are false for the defect is gone; where they hold again for it costs more, it is back."""
    name = "found.syncs"
    found = course(
        [
            state(Verdict.VERIFIED if holds else Verdict.REFUTED, line(law, holds, name=name))
            for law, holds in (before, after)
        ]
    )
    assert [line_turn] == [step[3] for step in steps(found, name)]
    assert [verdict_turn] == [step[3] for step in steps(found, VERDICT)]


def test_other_variants_only_change() -> None:
    """What is proposed and not in use is no regression."""
    name = "recommended.syncs"
    found = course(
        [state(Verdict.VERIFIED, line("1", name=name)), state(Verdict.VERIFIED, line("n", False, name=name))]
    )
    assert ([Trend.CHANGE], False) == ([step[3] for step in steps(found, name)], found.is_worse)


def test_commits_of_which_nothing_is_known_are_passed_over() -> None:
    """What comes after them is compared with what was before; they are listed with their reasons."""
    unclear = state(Verdict.INCONCLUSIVE)
    found = course([ABSENT, fixed(), unclear, ABSENT, fixed("n", holds=False)])
    assert [(4, "1", "n (not as claimed)", Trend.REGRESSION)] == steps(found)
    assert ["there is no such ticket", None, "inconclusive: so", "there is no such ticket", None] == [
        gap and gap.why for gap in found.gaps
    ]
    assert found.is_known
    assert not course([ABSENT, unclear]).is_known


def test_a_branch_is_told_of_and_its_merge_is_not() -> None:
    """0 and 1 are main, 2 is a branch of 0 that brings the regression, 3 merges it."""
    good, bad = fixed(), fixed("n", holds=False)
    found = course([good, good, bad, bad], nodes((), (0,), (0,), (1, 2)))
    assert [(2, Trend.REGRESSION)] == [(step[0], step[3]) for step in steps(found)]
    assert found.is_worse


def test_a_merge_that_undoes_a_fix_is_told_of() -> None:
    """1 of main mends what 0 had, 2 is a branch that changed nothing of it, and 3 takes the branch's side."""
    good, bad = fixed(), fixed("n", holds=False)
    found = course([bad, good, bad, bad], nodes((), (0,), (0,), (1, 2)))
    assert [(1, Trend.IMPROVEMENT), (3, Trend.REGRESSION)] == [(step[0], step[3]) for step in steps(found)]
    kept = course([bad, good, bad, good], nodes((), (0,), (0,), (1, 2)))
    assert [(1, Trend.IMPROVEMENT)] == [(step[0], step[3]) for step in steps(kept)]


def test_a_merge_undoes_a_fix_also_with_a_branch_that_went_its_own_way_and_came_back() -> None:
    """1 of main mends what 0 had; the branch makes it worse at 2 and as it was at 3; 4 takes its side."""
    good, bad, worse = fixed(), fixed("n", holds=False), fixed("2*n", holds=False)
    found = course([bad, good, worse, bad, bad], nodes((), (0,), (0,), (2,), (1, 3)))
    assert [
        (1, Trend.IMPROVEMENT),
        (2, Trend.REGRESSION),
        (3, Trend.IMPROVEMENT),
        (4, Trend.REGRESSION),
    ] == [(step[0], step[3]) for step in steps(found)]
    assert ([False, True], True) == (opened(found), found.is_worse)


def test_a_merge_undoes_a_fix_also_with_a_branch_that_had_merged_it_and_kept_its_own() -> None:
    """1 mends it on main, 2 changes the branch and 3 changes it back; 4 merges 1 there, 5 merges that."""
    good, bad, worse = fixed(), fixed("n", holds=False), fixed("2*n", holds=False)
    commits = nodes((), (0,), (0,), (2,), (3, 1), (1, 4))
    found = course([bad, good, worse, bad, bad, bad], commits)
    assert (5, "1", "n (not as claimed)", Trend.REGRESSION) == steps(found)[-1]
    assert found.is_worse


def test_a_merge_of_branches_that_merged_each_other_undoes_a_fix() -> None:
    """1 mends it on main; 3 and 4 merge either into the other, each as it was itself; 5 takes the branch."""
    good, bad = fixed(), fixed("n", holds=False)
    commits = nodes((), (0,), (0,), (1, 2), (2, 1), (3, 4))
    found = course([bad, good, bad, good, bad, bad], commits)
    assert [(1, Trend.IMPROVEMENT), (5, Trend.REGRESSION)] == [(step[0], step[3]) for step in steps(found)]


def test_a_merge_that_takes_the_lesser_of_two_fixes_makes_the_difference() -> None:
    """1 of main mends all of what 0 had and 2 half of it; 3 takes the half."""
    good, half, bad = fixed(), fixed("n", holds=False), fixed("2*n", holds=False)
    found = course([bad, good, half, half], nodes((), (0,), (0,), (1, 2)))
    assert (3, "1", "n (not as claimed)", Trend.REGRESSION) == steps(found)[-1]
    assert found.is_worse


def test_what_a_branch_of_a_branch_made_is_told_of_once() -> None:
    """2 is a branch of the branch 1; 3 merges it there, and 5 merges that into main, which went on to 4."""
    good, bad = fixed(), fixed("n", holds=False)
    commits = nodes((), (0,), (1,), (1, 2), (0,), (4, 3))
    found = course([good, good, bad, bad, good, bad], commits)
    assert [(2, Trend.REGRESSION)] == [(step[0], step[3]) for step in steps(found)]


def test_a_branch_from_before_the_range_brings_no_change_by_being_old() -> None:
    """0 is where the branch began, 1 where the range does, mended; 2 is the branch, 3 the merge."""
    good, bad = fixed(), fixed("n", holds=False)
    found = course([bad, good, bad, bad], nodes((), (), (0,), (1, 2)))
    assert [(3, Trend.REGRESSION)] == [(step[0], step[3]) for step in steps(found)]


def test_a_merge_that_is_none_of_its_parents_makes_a_change_itself() -> None:
    """Both sides wait once, and together they wait as often as there are tensors."""
    found = course([fixed("1"), fixed("1"), fixed("1"), fixed("n")], nodes((), (0,), (0,), (1, 2)))
    assert [(3, "1", "n", Trend.REGRESSION)] == steps(found)


def test_what_has_no_law_is_another_where_it_costs_more_or_less() -> None:
    """Though the range is the same, which is then told with the value at the last point."""
    before, after = (line("no law, 1..33", values=values) for values in ((1, 33, 20), (1, 33, 25)))
    found = course([state(Verdict.VERIFIED, each) for each in (before, before, after, before)])
    less, more = ("no law, 1..33, 20 at n=5", "no law, 1..33, 25 at n=5")
    assert [(2, less, more, Trend.REGRESSION), (3, more, less, Trend.IMPROVEMENT)] == steps(found)


@pytest.mark.parametrize(
    ("last", "is_open"),
    [
        (ABSENT, False),
        (state(Verdict.VERIFIED, line("n", name="found.syncs")), False),
        (state(Verdict.INCONCLUSIVE), True),
        (UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why="no such revision"), True),
        (UnmeasuredCommit(kind=WhyUnmeasured.WRONG, why="unknown metric"), True),
    ],
)
def test_of_what_head_does_not_have_any_more_nothing_is_open(last: CommitResult, *, is_open: bool) -> None:
    """The ticket or its verifier is gone, or the claim; where it only is not known, what was still counts."""
    found = course([fixed(), fixed("n", holds=False), last])
    assert [Trend.REGRESSION] == [step[3] for step in steps(found)]
    assert ([is_open], is_open) == (opened(found), found.is_worse)


def test_values_are_those_at_the_last_point_that_most_sweeps_have() -> None:
    """None where nothing is known."""
    short = state(Verdict.VERIFIED, line("n", points=N[:2], values=(1, 2)))
    found = course([fixed("n"), ABSENT, short])
    (row,) = (row for row in found.rows if row.name == "fix.syncs")
    assert ({"n": 2}, (2, None, 2)) == (found.at, row.values)
    assert TimelineStep(0, None, "n") == row.steps[0]
