"""An implementation review: what a reviewer says of a change."""

from __future__ import annotations

from typing import Literal

from finding_tickets.model.record import Field, Record, Text
from finding_tickets.model.remediation import Remediation
from finding_tickets.model.ticket import ChecklistItem, CodeBlock, Location, Section


class Commits(Text):
    """The range of commits under review; ``base`` is None where only one is named."""

    base: str | None
    head: str


class Requirement(Text):
    """One requirement of the plan; ``implementation`` is empty where only the requirement is listed."""

    text: str
    implementation: str
    met: bool | None


class Issue(Text):
    """One issue found by the review, under the severity heading it stands under."""

    severity: str
    id: str
    title: str
    details: dict[str, str]


class Score(Text):
    """``value`` out of ``out_of`` for one quality; the overall score has the name ``overall``."""

    name: str
    value: float
    out_of: float
    remark: str


class PerformanceClaim(Text):
    """A sentence or figure by which the review claims an improvement."""

    text: str


class Artifact(Text):
    """A file, test or commit that the change made or touched, under its group's heading."""

    group: str
    name: str
    remark: str


class ImplementationReview(Record):
    """A review of a change. ``path`` is relative to the register's root; a field not there is None."""

    kind: Literal["review"] = "review"
    path: str
    id: Field[str]
    title: Field[str]
    metadata: dict[str, Text]
    reviewer: Field[str] | None
    date: Field[str] | None
    commits: Commits | None
    plan: Field[str] | None
    verdict: Field[str] | None
    code_repository: Field[str] | None
    requirements: tuple[Requirement, ...]
    issues: tuple[Issue, ...]
    issue_counts: dict[str, int]
    scores: tuple[Score, ...]
    performance_claims: tuple[PerformanceClaim, ...]
    artifacts: tuple[Artifact, ...]
    locations: tuple[Location, ...]
    evidence: tuple[CodeBlock, ...]
    checklist: tuple[ChecklistItem, ...]
    remediation: Remediation | None
    sections: tuple[Section, ...]
