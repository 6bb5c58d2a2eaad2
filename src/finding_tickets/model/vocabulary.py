"""The words a register's fields are normalised to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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

AGENTS = {
    "drl": ("deep rl", "reinforcement learning"),
    "pytorch": ("torch",),
    "codereview": ("code quality",),
}

STATUS_SPELLINGS = {
    Status.IN_PROGRESS.value: ("in progress",),
    Status.IN_REVIEW.value: ("review",),
    Status.CLOSED.value: ("resolved", "done"),
}

ID_PATTERN = r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-[0-9]+"

Words = Mapping[str, tuple[str, ...]]


def squeeze(text: str) -> str:
    """``text`` without case, spaces and punctuation, so that spellings can be compared."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _words(vocabulary: type[StrEnum]) -> dict[str, tuple[str, ...]]:
    return {word.value: () for word in vocabulary}


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words of a register: each maps to the other spellings that mean the same.

    A register may add spellings to the words of ``severities``, ``statuses``, ``outcomes`` and ``opinions``,
    and choose its own ``agents``, ``domains`` (none: any domain will do) and ``categories``.
    """

    id_pattern: str = ID_PATTERN
    severities: Words = field(default_factory=lambda: _words(Severity))
    statuses: Words = field(default_factory=lambda: {**_words(Status), **STATUS_SPELLINGS})
    outcomes: Words = field(default_factory=lambda: _words(Outcome))
    opinions: Words = field(default_factory=lambda: _words(Opinion))
    agents: Words = field(default_factory=lambda: dict(AGENTS))
    domains: Words = field(default_factory=dict)
    categories: Words = field(default_factory=lambda: dict.fromkeys(CATEGORIES, ()))


def word_for(text: str, words: Words) -> str | None:
    """The word of a vocabulary that ``text`` is a spelling of, or None."""
    wanted = squeeze(text)
    matches = (
        word for word, spellings in words.items() if wanted in (squeeze(word), *map(squeeze, spellings))
    )
    return next(matches, None)
