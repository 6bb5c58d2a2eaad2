"""Checking claims against runs, point by point."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verify.conftest import MadeUpRun, report, run

from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import ClaimResult, MeasuredTicket, ResultCheck
from finding_tickets.verify.judge import check

POINTS = [{"n": n, "devices": devices} for n, devices in [(0, 1), (1, 1), (2, 1), (3, 2), (5, 1), (8, 3)]]


def claim(value: str, metric: str = "syncs", **more: Any) -> Claim:
    """A claim about ``found``."""
    fields = {"at": {}, "expect": "holds", "why": None, "tolerance": None, "line": 9, **more}
    return Claim(id=f"found.{metric}", variant="found", metric=metric, value=value, **fields)


def result(one: Claim, measured: MeasuredTicket | None = None) -> ClaimResult:
    """The result of a claim; by default ``found`` waits ``4*n`` times, but once more with three devices."""
    runs = [run(at, syncs=4 * at["n"] + (at["devices"] == 3)) for at in POINTS]
    (checked,) = check([one], measured or report({"found": runs}))
    return checked


def test_a_claim_must_hold_at_every_point() -> None:
    """One point off refutes it, and is the counterexample."""
    checked = result(claim("4*n"))
    assert (False, ("n=8, devices=3: 33",)) == (checked.holds, checked.counterexamples)


def test_conditions_select_the_points() -> None:
    """``at`` restricts a claim, its law and its counterexamples to the points that meet every condition."""
    checked = result(claim("4*n", at={"devices": "<= 2", "n": "1..n"}))
    # Points 1, 2, 3 and 5 of the six: n is 0 at the first, and the last has three devices.
    assert (True, "4*n, at 4 of 6 points", ()) == (checked.holds, checked.measured, checked.counterexamples)
    assert "4*n where devices <= 2, n 1..n" == checked.claimed


def test_a_metric_that_the_meter_does_not_count_decides_nothing() -> None:
    """A real device does not tell drains: that is not 0, it is the reason why the claim stays open.

    Simulated runs without them are older than the metric.
    """
    runs = report({"found": [run(at, syncs=1) for at in POINTS]})
    for meter, why in (
        ("cuda", "the cuda meter does not count drains"),
        ("simulated", "not measured at any point of the claim"),
    ):
        checked = result(claim("0", metric="drains"), runs.model_copy(update={"meter": meter}))
        assert (None, why) == (checked.holds, checked.measured)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("<= 4*n + 1", True),
        ("< 4*n + 1", False),
        ("0..33", True),
        ("1..33", False),
    ],
)
def test_bounds_and_ranges_are_checked(value: str, holds: bool) -> None:
    """A claim may be weaker than a law."""
    assert holds is result(claim(value)).holds


def test_a_growth_class_is_decided_by_a_law() -> None:
    """With up to two devices the law is ``4*n``, with three there is none and any class may be right."""
    few = {"devices": "<= 2"}
    assert [True, False] == [result(claim(value, at=few)).holds for value in ("O(n)", "O(1)")]
    undecided = result(claim("O(n)"))
    assert (None, "the sweep cannot tell: no law, 0..33") == (undecided.holds, undecided.measured)


def test_without_a_law_the_range_is_shown() -> None:
    """What was measured is then told by the smallest and the largest value."""
    assert result(claim("4*n")).measured.endswith("0..33")


def test_no_point_is_no_result() -> None:
    """A claim about points that the sweep does not have is not checked."""
    assert None is result(claim("4*n", at={"n": "> 100"})).holds


def test_a_metric_that_was_not_measured_is_no_result() -> None:
    """A metric that no run counted can neither hold nor fail."""
    assert None is result(claim("0", "graph_breaks")).holds


def failing(*, at_three_devices: bool = True) -> list[MadeUpRun]:
    """Runs of a variant that raises with three devices, after one wait."""
    return [
        run(at, "x.py:3: RuntimeError: no", syncs=1)
        if at["devices"] == 3 and at_three_devices
        else run(at, syncs=7)
        for at in POINTS
    ]


def test_an_exception_decides_nothing() -> None:
    """A variant that raises where no claim expects it leaves its claims unchecked, with place and error."""
    checked = result(claim("7"), report({"found": failing()}))
    assert (None, "found at n=8, devices=3: x.py:3: RuntimeError: no") == (checked.holds, checked.measured)


@pytest.mark.parametrize(
    "ending",
    [
        claim("0", "raised", at={"devices": "<= 2"}),
        claim("1", "raised", at={"n": "5"}),
        claim("O(1)", "raised"),
        claim("0..1", "ooms"),
    ],
)
def test_an_exception_elsewhere_than_claimed_decides_nothing(ending: Claim) -> None:
    """A claim about other points, about the growth or about memory says nothing of this exception."""
    checked = check([claim("7"), ending], report({"found": failing()}))
    why = "found at n=8, devices=3: x.py:3: RuntimeError: no"
    assert [(None, why), (None, why)] == [(one.holds, one.measured) for one in checked]


def test_an_exception_that_is_ruled_out_makes_that_claim_false() -> None:
    """``raised: 0`` is about the point and wrong there; the other claims tell where they were checked."""
    waits, ending = check([claim("7"), claim("0", "raised")], report({"found": failing()}))
    assert (True, "7, at 5 of 6 points") == (waits.holds, waits.measured)
    assert (False, ("n=8, devices=3: 1",)) == (ending.holds, ending.counterexamples)


def test_a_claim_about_failed_allocations_explains_running_out_of_memory() -> None:
    """Where an allocation failed, ``ooms`` is what the exception is about."""
    runs = [run(at, "x.py:3: OutOfMemoryError" if at["n"] == 8 else None, ooms=at["n"] // 8) for at in POINTS]
    claims = [claim("1", "ooms", at={"n": "8"}), claim("0", "ooms", at={"n": "< 8"})]
    assert [True, True] == [checked.holds for checked in check(claims, report({"found": runs}))]


def test_an_exception_that_is_claimed_is_data() -> None:
    """With a claim about ``raised`` the runs that raised count for it, and for no other metric."""
    claims = [
        claim("7"),
        claim("1", "raised", at={"devices": "3"}),
        claim("0", "raised", at={"devices": "<= 2"}),
    ]
    assert [True, True, True] == [checked.holds for checked in check(claims, report({"found": failing()}))]


def test_an_unknown_operation_decides_nothing() -> None:
    """Where the cost of an operation is not known no count can be trusted, and its name says why."""
    runs = [run(at, unknown=("aten.mystery",), syncs=1) for at in POINTS]
    checked = result(claim("1"), report({"found": runs}))
    assert (None, "found uses operations of unknown cost: aten.mystery") == (checked.holds, checked.measured)


def test_equal_results_are_a_claim() -> None:
    """``same_result_as`` holds where every comparison found no difference; skipped points are counted."""
    same = [ResultCheck(variant="found", target="fix", at=at, skipped=at["devices"] == 3) for at in POINTS]
    checked = result(claim("fix", "same_result_as"), report({"found": failing(at_three_devices=False)}, same))
    assert (True, "equal at 5 of 5 points, 1 skipped where it raised") == (checked.holds, checked.measured)


def test_a_different_result_is_shown() -> None:
    """The first difference and its point are the counterexample."""
    same = [
        ResultCheck(
            variant="found",
            target="fix",
            tolerance=0.5,
            at=at,
            difference="result: 2 instead of 1" if at["n"] == 5 else None,
        )
        for at in POINTS
    ]
    one = claim("fix", "same_result_as", tolerance=0.5)
    checked = result(one, report({"found": failing(at_three_devices=False)}, same))
    assert (False, ("n=5, devices=1: result: 2 instead of 1",)) == (checked.holds, checked.counterexamples)


def test_nothing_compared_is_no_result() -> None:
    """Where the other variant raised at every point, nothing is known."""
    same = [ResultCheck(variant="found", target="fix", at=at, skipped=True) for at in POINTS]
    measured = report({"found": failing(at_three_devices=False)}, same)
    assert None is result(claim("fix", "same_result_as"), measured).holds


@pytest.mark.parametrize(
    ("one", "message", "hint"),
    [
        (claim("4*m"), "claim found.syncs: unknown variable 'm' at column 3", "known: n, devices"),
        (
            claim("4", at={"device": "1"}),
            "unknown variable 'device'",
            "did you mean 'devices'? known: n, devices",
        ),
        (claim("8/n"), "division by zero in 8 / 0", None),
    ],
)
def test_a_claim_without_a_meaning_is_bad_data(one: Claim, message: str, hint: str | None) -> None:
    """An unknown variable and a division by zero are errors of the ticket, with their line."""
    with pytest.raises(BadDataError) as caught:
        result(one)
    assert (True, hint, 9) == (message in caught.value.message, caught.value.hint, caught.value.line)


def test_a_claim_that_a_modelled_number_decides_says_so() -> None:
    """Of 3 to 9 launches 3 are usual: at most 9 holds for sure, at most 5 by the usual number."""
    made = run({"n": 1}, launches=3)
    measured = report(
        {"found": [made._replace(sample=made.sample.model_copy(update={"ranges": {"launches": (3, 9)}}))]}
    )
    sure, modelled = (result(claim(value, metric="launches"), measured) for value in ("<= 9", "<= 5"))
    assert ((True, False), (True, True)) == ((sure.holds, sure.modelled), (modelled.holds, modelled.modelled))
    assert "~3 (3..9), which rests on modelled numbers" == modelled.measured
