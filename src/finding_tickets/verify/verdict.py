"""The verdict on a ticket, from the results of its claims; docs/concepts.md has the same rules as a table."""

from __future__ import annotations

from collections.abc import Sequence

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult

FOUND = "found"
FIX = "fix"
DECIDING = (FOUND, FIX)

Ruling = tuple[Verdict, str]


def rule(claims: Sequence[ClaimResult], *, has_fix: bool, keep: bool, trouble: str | None) -> Ruling:
    """The verdict and its reason.

    Claims about other variants than ``found`` and ``fix`` do not decide. ``trouble`` is why the runs of one
    of these two decide nothing. With ``keep`` the claims are what justifies leaving the code as it is.
    """
    deciding = [claim for claim in claims if claim.variant in DECIDING]
    if reason := trouble or _undecided(deciding):
        return Verdict.INCONCLUSIVE, reason
    false = {
        name: [claim for claim in deciding if claim.variant == name and not claim.holds] for name in DECIDING
    }
    if any(false.values()):
        return _negative(false[FOUND], false[FIX], keep=keep)
    return _positive(deciding, has_fix=has_fix, keep=keep)


def _undecided(deciding: Sequence[ClaimResult]) -> str | None:
    if not deciding:
        return "there is no claim about found or fix"
    unchecked = [f"{claim.id}: {claim.measured}" for claim in deciding if claim.holds is None]
    return f"not checked: {'; '.join(unchecked)}" if unchecked else None


def _negative(found: Sequence[ClaimResult], fix: Sequence[ClaimResult], *, keep: bool) -> Ruling:
    reasons = [_reason(claim) for claim in (*found, *fix)]
    if fix or keep:
        return Verdict.FAILED, "; ".join(reasons)
    return Verdict.REFUTED, "; ".join(reasons)


def _positive(deciding: Sequence[ClaimResult], *, has_fix: bool, keep: bool) -> Ruling:
    if keep:
        return Verdict.VERIFIED, "every claim that justifies keeping the code as found holds"
    if any(claim.variant == FIX for claim in deciding):
        return Verdict.VERIFIED, "every claim about found and fix holds"
    why = "the fix has no claims" if has_fix else "there is no fix yet"
    return Verdict.REPRODUCED, f"every claim about found holds; {why}"


def _reason(claim: ClaimResult) -> str:
    return f"{claim.id}: claimed {claim.claimed}, measured {claim.measured}"
