"""The words for what the machine measured."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What the machine measured; it never overwrites what people decided."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    FAILED = "failed"
    REPRODUCED = "reproduced"
    INCONCLUSIVE = "inconclusive"
    STALE = "stale"
    UNVERIFIED = "unverified"


BEST_FIRST = (
    Verdict.VERIFIED,
    Verdict.REPRODUCED,
    Verdict.REFUTED,
    Verdict.FAILED,
    Verdict.INCONCLUSIVE,
    Verdict.STALE,
    Verdict.UNVERIFIED,
)
"""How much a verdict is worth to whoever guards a register: what is known and good, known, not known."""
