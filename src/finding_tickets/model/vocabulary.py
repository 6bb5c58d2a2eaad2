"""The words a register's fields are normalised to."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"
    P4 = "P4"


class Status(StrEnum):
    """Where a ticket stands according to the people who work on it."""

    OPEN = "open"
    INVESTIGATING = "investigating"
    IN_PROGRESS = "fix-in-progress"
    IN_REVIEW = "in-review"
    CLOSED = "closed"
    FIXED = "fixed"
    WONT_FIX = "wont-fix"
    INVALID = "invalid"


class Outcome(StrEnum):
    """How a ticket was resolved."""

    FIXED = "fixed"
    WONT_FIX = "wont-fix"
    ACCEPTABLE = "acceptable"
    NOT_A_BUG = "not-a-bug"
    DUPLICATE = "duplicate"


class Opinion(StrEnum):
    """A cross-reviewer's verdict on a finding."""

    ENDORSE = "ENDORSE"
    REFINE = "REFINE"
    NEUTRAL = "NEUTRAL"
    OBJECT = "OBJECT"


class Relationship(StrEnum):
    """How one ticket relates to another."""

    RELATED = "related"
    DUPLICATE = "duplicate"
    BLOCKS = "blocks"
    BLOCKED_BY = "blocked-by"


CATEGORIES = (
    "Correctness bug",
    "Race condition / concurrency",
    "Memory leak / resource issue",
    "Performance bottleneck",
    "Numerical stability",
    "torch.compile compatibility",
    "Dead code / unwired functionality",
    "API design / contract violation",
    "Test coverage gap",
    "Documentation / naming",
    "Defensive programming violation",
    "Legacy code policy violation",
)
