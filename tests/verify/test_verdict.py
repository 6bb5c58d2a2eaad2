"""The verdict as a function of the claims' results."""

from __future__ import annotations

import pytest

from finding_tickets.model.verification import ClaimResult
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.judge import verdict_of


def claim(variant: str, holds: bool | None, *, refuted: bool = False) -> ClaimResult:
    """A result of a claim about the waits of a variant."""
    return ClaimResult(
        id=f"{variant}.syncs",
        variant=variant,
        metric="syncs",
        claimed="1",
        measured="2",
        holds=holds,
        expect="refuted" if refuted else "holds",
    )


FOUND, FIX = claim("found", holds=True), claim("fix", holds=True)
NO_FOUND, NO_FIX = claim("found", holds=False), claim("fix", holds=False)

TABLE: list[tuple[list[ClaimResult], Verdict]] = [
    ([FOUND, FIX], Verdict.VERIFIED),
    ([FIX], Verdict.VERIFIED),
    ([NO_FOUND, FIX], Verdict.REFUTED),
    ([NO_FOUND], Verdict.REFUTED),
    ([FOUND, NO_FIX], Verdict.FAILED),
    ([NO_FOUND, NO_FIX], Verdict.FAILED),
    ([FOUND], Verdict.REPRODUCED),
    ([], Verdict.INCONCLUSIVE),
    ([claim("found", holds=None), FIX], Verdict.INCONCLUSIVE),
    ([NO_FOUND, claim("fix", holds=None)], Verdict.INCONCLUSIVE),
    ([FOUND, FIX, claim("recommended", holds=False)], Verdict.VERIFIED),
    ([FOUND, FIX, claim("recommended", holds=None)], Verdict.VERIFIED),
    ([claim("recommended", holds=True)], Verdict.INCONCLUSIVE),
    ([claim("found", holds=False, refuted=True), FIX], Verdict.REFUTED),
]


@pytest.mark.parametrize(("claims", "expected"), TABLE)
def test_claims_about_found_and_fix_decide(claims: list[ClaimResult], expected: Verdict) -> None:
    """Each row of the table of verdicts; an expected refutation is a refutation all the same."""
    assert (
        expected
        == verdict_of(claims, has_fix=any(c.variant == "fix" for c in claims), keep=False, trouble=None)[0]
    )


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([FOUND], Verdict.VERIFIED),
        ([NO_FOUND], Verdict.FAILED),
        ([FOUND, NO_FIX], Verdict.FAILED),
        ([claim("found", holds=None)], Verdict.INCONCLUSIVE),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_a_decision_to_keep_needs_its_reasons(claims: list[ClaimResult], expected: Verdict) -> None:
    """Where the code is to stay, the claims about it are what justifies that: no fix is missing."""
    assert expected == verdict_of(claims, has_fix=False, keep=True, trouble=None)[0]


def test_runs_that_decide_nothing_are_inconclusive() -> None:
    """A variant that did not execute is never a pass, whatever the claims say."""
    assert (Verdict.INCONCLUSIVE, "fix was not run") == verdict_of(
        [FOUND, FIX], has_fix=True, keep=False, trouble="fix was not run"
    )


def test_both_false_claims_are_named() -> None:
    """Where the finding and the fix both fail, the reason says both."""
    _, reason = verdict_of([NO_FOUND, NO_FIX], has_fix=True, keep=False, trouble=None)
    assert "found.syncs: claimed 1, measured 2; fix.syncs: claimed 1, measured 2" == reason


def test_a_fix_without_claims_is_no_proof() -> None:
    """A fix that nothing is claimed of leaves the finding reproduced, and the reason says so."""
    verdict, reason = verdict_of([FOUND], has_fix=True, keep=False, trouble=None)
    assert (Verdict.REPRODUCED, True) == (verdict, reason.endswith("the fix has no claims"))
