"""The decision about a ticket: two verifications, and no other word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from finding_tickets.gate.check import decide
from finding_tickets.model.verification import ClaimResult, Sample, SiteLaw, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict

Costs = Mapping[int, int]
STATED = (1, 2, 5)


def claim(name: str, claimed: str, failing: Mapping[int, object], **more: Any) -> ClaimResult:
    """A claim that fails at these points; what is no more than claimed is below it."""
    variant, _, metric = name.partition(".")
    below = []
    for n, value in failing.items():
        if isinstance(value, int) and value <= (n if claimed == "n" else int(claimed)):
            below.append(f"n={n}: {value}")
    return ClaimResult(
        id=more.pop("id", name),
        variant=variant,
        metric=metric,
        claimed=claimed,
        measured="m",
        holds=not failing,
        expect="holds",
        counterexamples=tuple(f"n={n}: {value}" for n, value in failing.items()),
        below=tuple(below),
        **more,
    )


def measured(
    costs: Costs, *claims: ClaimResult, verdict: Verdict = Verdict.VERIFIED, **more: Any
) -> Verification:
    """A verification in which the fix waits so often at each point; what is not stated is further."""
    samples = tuple(Sample(at={"n": n}, metrics={"syncs": cost, **more}) for n, cost in costs.items())
    sites = tuple(
        SiteLaw(file="fix.py", line=3, function="f", what=what, law=law)
        for what, law in (("stream_syncs", str(costs)), *(("hazards", "1") for _ in more))
    )
    return Verification(
        ticket="A-1",
        verdict=verdict,
        reason="why",
        meter="simulated",
        torch="2",
        device="d",
        sweep=tuple({"n": n} for n in costs),
        variants={
            "found": VariantResult(laws={}, samples=(), sites=()),
            "fix": VariantResult(laws={}, samples=samples, sites=sites),
        },
        claims=claims,
        further=tuple({"n": n} for n in costs if n not in STATED),
    )


SAME = {1: 1, 2: 1, 5: 1}
HOLDS = claim("fix.syncs", "1", {})


def test_a_claim_that_failed_before_is_none() -> None:
    """Not at the same points; at another one it is."""
    before = measured({1: 1, 2: 2, 5: 1}, claim("fix.syncs", "1", {2: 2}))
    assert [] == decide(before, before).worse
    now = measured({1: 1, 2: 2, 5: 5}, claim("fix.syncs", "1", {2: 2, 5: 5}))
    (reason,) = decide(before, now).worse
    assert "(n=5: 5)" in reason


def test_a_claim_that_the_branch_adds_must_hold() -> None:
    """It says something false, and no more is spent than before."""
    before = measured(SAME, HOLDS)
    assert [] == decide(before, measured(SAME, HOLDS, claim("fix.h2d", "0", {}))).worse
    false = claim("fix.syncs", "0", {1: 1}, id="fix.syncs[1]")
    assert 1 == len(decide(before, measured(SAME, HOLDS, false)).worse)


def test_a_claim_that_fails_as_a_whole() -> None:
    """It has no point to name: it is a regression unless it failed before."""
    whole = claim("fix.syncs", "O(1)", {}).model_copy(update={"holds": False})
    before, now = measured(SAME, HOLDS), measured({1: 1, 2: 2, 5: 5}, whole)
    assert ["fix.syncs is claimed to be O(1), and is m"] == decide(before, now).worse
    assert [] == decide(now, now).worse


def test_an_improvement_is_a_note() -> None:
    """A cost that is nowhere higher than before breaks an exact claim, and harms nobody."""
    now = measured({1: 0, 2: 0, 5: 0}, claim("fix.syncs", "1", {1: 0, 2: 0, 5: 0}))
    compared = decide(measured(SAME, HOLDS), now)
    assert ([], ["fix.syncs is better than claimed, 1 (n=1: 0)"]) == (compared.worse, compared.better)
    mixed = measured({1: 0, 2: 3, 5: 0}, claim("fix.syncs", "1", {1: 0, 2: 3, 5: 0}))
    assert decide(measured(SAME, HOLDS), mixed).worse


def test_another_result_is_never_an_improvement() -> None:
    """However little it costs."""
    before = measured(SAME, claim("fix.same_result_as", "found", {}))
    now = measured({1: 0, 2: 0, 5: 0}, claim("fix.same_result_as", "found", {2: "index 0: 1 != 2"}))
    (reason,) = decide(before, now).worse
    assert "n=2: index 0: 1 != 2" in reason


def test_what_cannot_be_measured_any_more_is_a_regression() -> None:
    """The reason is that of the measurement; where it could not be measured before, nothing is lost."""
    unknown = measured({}, verdict=Verdict.INCONCLUSIVE)
    assert ["why"] == decide(measured(SAME, HOLDS), unknown).worse
    assert [] == decide(unknown, unknown).worse
    assert ["why"] == decide(None, unknown).worse


@pytest.mark.parametrize(("value", "is_worse"), [(9, True), (1, False)])
def test_a_new_fix_at_a_size_that_no_file_states(value: int, is_worse: bool) -> None:
    """It must cost no more there than is claimed; to cost less may be another size than the point says."""
    now = measured({**SAME, 8: value}, claim("fix.syncs", "2", {8: value}))
    assert is_worse is bool(decide(None, now).worse)


def test_a_size_for_which_the_ticket_is_not_true_says_nothing() -> None:
    """The code as found is the base's: where even its claim fails, the point is none for the ticket."""
    both = (claim("found.syncs", "n", {8: 3}), claim("fix.syncs", "1", {8: 9}))
    assert [] == decide(None, measured({**SAME, 8: 9}, *both)).worse
