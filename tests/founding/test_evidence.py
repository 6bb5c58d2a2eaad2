"""The evidence that is kept with the founding documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.register.load import load

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("ticket", "verdict"),
    [
        # Claims about the code as found hold, and so do those about the fix, or the reasons for keeping it.
        ("B7-PT-02", "verified"),
        ("B3-CR-05", "verified"),
        ("B1-PT-02", "verified"),
        # The peak is not the copy alone; the code before the change did not wait for each gradient.
        ("B7-PT-03", "refuted"),
        ("TASK-5", "refuted"),
    ],
)
def test_the_kept_evidence_is_fresh(ticket: str, verdict: str) -> None:
    """Nothing that the evidence depends on changed since it was recorded; ``tickets verify`` renews it."""
    register = load(ROOT)
    assert verdict == register.measured(register.find(ticket)).verdict


def test_every_claim_came_out_as_expected() -> None:
    """A claim that does not hold says so in its ticket, with the reason."""
    register = load(ROOT)
    for document in register.documents:
        verification = register.measured(document).verification
        assert verification is not None
        assert [] == [claim.id for claim in verification.claims if not claim.as_expected]
