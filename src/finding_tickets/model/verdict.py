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
