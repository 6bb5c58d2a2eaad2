"""The words that the fields of records are normalised to; nothing here imports pydantic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache


class Severity(StrEnum):
    """The severity of a finding, worst first."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"
    P4 = "P4"


class Status(StrEnum):
    """The status of a ticket as its people set it."""

    OPEN = "open"
    INVESTIGATING = "investigating"
    IN_PROGRESS = "fix-in-progress"
    IN_REVIEW = "in-review"
    CLOSED = "closed"
    FIXED = "fixed"
    WONT_FIX = "wont-fix"
    INVALID = "invalid"


UNSETTLED = frozenset(
    {Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS, Status.IN_REVIEW}
)


class Outcome(StrEnum):
    """The resolution of a ticket."""

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
    """The kind of a relation between two tickets."""

    RELATED = "related"
    DUPLICATE = "duplicate"
    BLOCKS = "blocks"
    BLOCKED_BY = "blocked-by"


class Level(StrEnum):
    """The level of a problem; only errors fail the gate."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(StrEnum):
    """The result of a measurement; it never overwrites a decision of people."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    FAILED = "failed"
    REPRODUCED = "reproduced"
    INCONCLUSIVE = "inconclusive"
    STALE = "stale"
    UNVERIFIED = "unverified"


# How the names of the rules about a Remediation begin: a document that breaks one is not measured.
REMEDIATION_RULES = "remediation-"

# Stands where a metric does, in a claim that a variant returns what another one returns.
SAME_RESULT = "same_result_as"

# The claim that what is run leaves the same behind, which no ticket has to state.
OUTCOME = "fix.result"

# Begins, in what was measured of a result, what was not compared.
WITHOUT = ", without "

ELSEWHERE = "elsewhere"
# A claim of a ticket about a place: where the fix waits, the code as found does, too.
NO_NEW_WAITS = "no new waits"

# Stands where a revision does, for the code as it is now.
WORKTREE = "worktree"

# How many points a sweep may have that is written down.
MOST_POINTS = 1000

# What the second ticket is to the first one, by what the first one is to the second.
CONVERSE: Mapping[Relationship, Relationship] = {
    Relationship.RELATED: Relationship.RELATED,
    Relationship.DUPLICATE: Relationship.DUPLICATE,
    Relationship.BLOCKS: Relationship.BLOCKED_BY,
    Relationship.BLOCKED_BY: Relationship.BLOCKS,
}


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

ID_PATTERN = r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-[0-9]+"

Words = Mapping[str, tuple[str, ...]]

_PUNCTUATION = re.compile(r"[^a-z0-9]+")
# Words in other alphabets, and the signs that people write in the place of a word.
_OTHER_LETTERS = re.compile(r"[^\W_]|[\u2300-\u2bff\U0001f000-\U0001faff]")


# The same labels and words stand in every document.
@lru_cache(maxsize=4096)
def squeeze(text: str) -> str:
    """``text`` without case, spaces and punctuation, so that spellings can be compared."""
    lowered = text.lower()
    return _PUNCTUATION.sub("", lowered) or "".join(_OTHER_LETTERS.findall(lowered))


class Spelled(dict[str, tuple[str, ...]]):
    """Words that are looked up by their spellings, as they are compared."""

    @cached_property
    def spellings(self) -> list[tuple[str, str]]:
        """Every spelling, the word itself first, with its word."""
        return [
            (squeeze(each), word)
            for word, others in self.items()
            for each in (word, *others)
        ]

    @cached_property
    def by_spelling(self) -> dict[str, str]:
        """The word of each spelling, the first of several."""
        # Where two words share a spelling, the first of them is to win, so it comes last.
        return dict(reversed(self.spellings))


def word_for(text: str, words: Words) -> str | None:
    """The word of a vocabulary that ``text`` is a spelling of, or None."""
    # Those of a vocabulary can be looked up by their spellings as they are.
    known = words if isinstance(words, Spelled) else Spelled(words)
    return known.by_spelling.get(squeeze(text))


AGENTS = Spelled(
    {
        "drl": ("deep rl", "reinforcement learning", "rl"),
        "pytorch": ("torch", "pt"),
        "codereview": ("code quality", "code reviewer", "cr"),
    }
)
# By the enumeration, for some words are in two: a ticket's status and its outcome are both "fixed".
_SPELLINGS: Mapping[type[StrEnum], Words] = {
    Status: {
        Status.OPEN: ("new", "triaged", "confirmed", "reopened"),
        Status.INVESTIGATING: ("under investigation", "in investigation"),
        Status.IN_PROGRESS: ("in progress", "fixing", "wip"),
        Status.IN_REVIEW: ("review", "under review"),
        Status.CLOSED: ("resolved", "done", "complete", "completed", "duplicate"),
        Status.FIXED: ("already fixed", "implemented"),
        Status.WONT_FIX: ("will not fix",),
        Status.INVALID: ("not a bug", "false positive", "rejected"),
    },
    Opinion: {
        Opinion.ENDORSE: ("endorsed", "endorses", "endorsement"),
        Opinion.REFINE: ("refined", "refines", "refinement"),
        Opinion.OBJECT: ("objects", "objected", "objection"),
    },
}


# What the folders of tickets are called beside the words of their tickets; ``none`` says nothing.
_FOLDERS: Words = {
    "none": (),
    **{outcome.value: () for outcome in Outcome},
    **{str(status): spellings for status, spellings in _SPELLINGS[Status].items()},
    Status.OPEN.value: (
        *_SPELLINGS[Status][Status.OPEN],
        "todo",
        "backlog",
        "inbox",
        "active",
        "unresolved",
    ),
    Outcome.NOT_A_BUG.value: ("not a bug", "false positive", "false positives"),
    Outcome.DUPLICATE.value: ("duplicates",),
}


# The words of each enumeration, with the spellings that every register knows.
_WORDS = {
    words: Spelled(
        {word.value: _SPELLINGS.get(words, {}).get(word, ()) for word in words}
    )
    for words in (Severity, Status, Outcome, Opinion)
}


_SUGGESTED = {
    "severities": {
        "P0": "critical, highest, fatal, blocker, blocking, showstopper, urgent, emergency, catastrophic,"
        " sev0, s0, critique, critiques, kritisch, cr\u00edtica, cr\u00edtico, \u4e25\u91cd, \u81f4\u547d,"
        " \u7d27\u6025, \u043a\u0440\u0438\u0442\u0438\u0447\u0435\u0441\u043a\u0430\u044f,"
        " \u043a\u0440\u0438\u0442\u0438\u0447\u0435\u0441\u043a\u0438\u0439,"
        " \u043a\u0440\u0438\u0442\u0438\u0447\u0435\u0441\u043a\u0438\u0435, \U0001f534",
        "P1": "high, major, serious, severe, important, error, errors, sev1, s1, haute, hoch, alta,"
        " \u9ad8, \u9ad8\u5371, \u0432\u044b\u0441\u043e\u043a\u0430\u044f,"
        " \u0432\u044b\u0441\u043e\u043a\u0438\u0439, majeur, majeurs, majeure, majeures, \U0001f7e0",
        "P2": "medium, moderate, normal, med, average, warning, warnings, sev2, s2, moyenne, mittel,"
        " media, \u4e2d, \u4e2d\u5371, \u4e00\u822c, \u0441\u0440\u0435\u0434\u043d\u044f\u044f,"
        " \u0441\u0440\u0435\u0434\u043d\u0438\u0439, \U0001f7e1",
        "P3": "low, minor, small, \u043d\u0438\u0437\u043a\u0430\u044f,"
        " \u043d\u0438\u0437\u043a\u0438\u0439, sev3, s3, basse, faible, niedrig, baja, baixa, \u4f4e,"
        " \u4f4e\u5371, mineur, mineurs, mineure, mineures, \U0001f7e2, \U0001f535",
        "P4": "info, lowest, nitpick, nitpicks, nits, informational, trivial, nit, cosmetic, note,"
        " suggestion, suggestions, negligible, sev4, s4, \u26aa",
    },
    "statuses": {
        "open": "planned, to do, backlog, pending, draft, proposed, active, unresolved, untriaged, ready,"
        " deferred, acknowledged, accepted, blocked, on hold, not started, not fixed, reported,"
        " identified, ouvert, offen, \u043e\u0442\u043a\u0440\u044b\u0442\u043e, abierto, aberto,"
        " \u5f85\u5904\u7406, \u672a\u4fee\u590d, \u672a\u89e3\u51b3",
        "investigating": "needs info, analysing, analyzing, under analysis, needs triage, triage",
        "fix-in-progress": "started, ongoing, doing, assigned, partially fixed, partial, working,"
        " en cours, \u8fdb\u884c\u4e2d, \u5904\u7406\u4e2d",
        "in-review": "testing, in testing, qa, needs review, awaiting review, ready for review",
        "closed": "solved, verified, \u0437\u0430\u043a\u0440\u044b\u0442\u043e, archived, obsolete,"
        " superseded, finished, addressed, clos, ferm\u00e9, cerrado, fechado, geschlossen,"
        " \u5df2\u5b8c\u6210, \u5df2\u5173\u95ed, \u5df2\u89e3\u51b3",
        "fixed": "patched, behoben, \u0438\u0441\u043f\u0440\u0430\u0432\u043b\u0435\u043d\u043e,"
        " mitigated, remediated, corrected, shipped, merged, released, corrig\u00e9, corregido,"
        " corrigido, \u5df2\u4fee\u590d",
        "wont-fix": "declined, wont do, will not do, accepted risk, risk accepted, by design",
        "invalid": "cannot reproduce, not reproducible, works as intended, working as intended,"
        " not an issue, works as designed, no bug, refuted, withdrawn",
    },
}
# What words may mean that the vocabulary lacks: proposed to a register that has them, never assumed.
SUGGESTED: Mapping[str, Words] = {
    key: Spelled(
        {word: tuple(spellings.split(", ")) for word, spellings in words.items()}
    )
    for key, words in _SUGGESTED.items()
}


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words of a register: each maps to the other spellings that mean the same.

    A register may add spellings to the words of ``severities``, ``statuses``, ``outcomes``, ``opinions`` and
    ``folders``, and choose its own ``agents``, ``domains`` (none: any will do) and ``categories``. Its
    ``labels`` are those that it gives to severity, status and other values, beside the usual ones.
    """

    id_pattern: str = ID_PATTERN
    severities: Words = field(default_factory=lambda: _WORDS[Severity])
    statuses: Words = field(default_factory=lambda: _WORDS[Status])
    outcomes: Words = field(default_factory=lambda: _WORDS[Outcome])
    opinions: Words = field(default_factory=lambda: _WORDS[Opinion])
    folders: Words = field(default_factory=lambda: Spelled(_FOLDERS))
    agents: Words = field(default_factory=dict)
    domains: Words = field(default_factory=dict)
    categories: Words = field(default_factory=lambda: dict.fromkeys(CATEGORIES, ()))
    labels: Words = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A register looks words up many thousand times: each table is prepared once.
        for name, words in vars(self).items():
            if isinstance(words, Mapping) and not isinstance(words, Spelled):
                object.__setattr__(self, name, Spelled(words))

    @cached_property
    def known_agents(self) -> Spelled:
        """The agents who are known by several spellings: the register's, else the usual ones."""
        return Spelled(self.agents or AGENTS)

    def folder_of(self, path: str) -> tuple[str, str] | None:
        """The innermost folder of a path that says how its tickets stand, and what it says: one word."""
        for name in path.split("/")[-2::-1]:
            if word := word_for(name, self.folders) or word_for(name, self.outcomes):
                return None if word == "none" else (name, word)
        return None

    @cached_property
    def an_id(self) -> re.Pattern[str]:
        """The pattern of IDs, in upper or lower case."""
        return re.compile(self.id_pattern, re.IGNORECASE)
