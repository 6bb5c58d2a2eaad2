"""A finding ticket, as it was written and as it is understood."""

from __future__ import annotations

from typing import Literal

from finding_tickets.model.record import Field, Record, Span, Text
from finding_tickets.model.remediation import Remediation
from finding_tickets.model.vocabulary import Opinion, Outcome, Relationship, Severity, Status


class LineRange(Record):
    """Lines ``first`` to ``last`` of a source file, both included, from 1."""

    first: int
    last: int


class Location(Text):
    """One place in the code a ticket speaks of; what is not stated is None or empty."""

    file: str | None
    lines: tuple[LineRange, ...]
    symbol: str | None


class Category(Text):
    """One line of the category checklist."""

    name: str
    ticked: bool


class Review(Text):
    """One cross-review; ``opinion`` is None where the verdict is not one of the vocabulary.

    ``reviewer`` has the register's word for the reviewer as its value, and is None where nobody is named.
    """

    reviewer: Field[str] | None
    verdict: Field[str]
    opinion: Opinion | None
    evaluation: Text | None


class Relation(Text):
    """A link to another ticket; ``relationship`` is ``related`` where the ticket does not say."""

    id: str
    relationship: Relationship
    note: str


class ChecklistItem(Text):
    """One line of the verification checklist."""

    text: str
    done: bool


class CodeBlock(Text):
    """A fenced block: its language, its content and, where its first comment names one, the code's place."""

    language: str
    code: str
    location: str | None


class ReportLink(Text):
    """Where a finding was first reported: a file and a section of it."""

    file: str
    section: str


class Resolution(Text):
    """The section that says how the ticket was resolved; ``outcome`` is None where it does not say."""

    outcome: Outcome | None


class Section(Record):
    """A heading and all bytes up to the next heading of its level or above; every byte of a file is in one.

    ``level`` is 0 for what precedes the first heading.
    """

    level: int
    title: str
    heading: Span
    body: Text
    known: bool


class Ticket(Record):
    """A finding ticket. ``path`` is relative to the register's root; a field that is not there is None."""

    kind: Literal["finding"] = "finding"
    path: str
    id: Field[str]
    title: Field[str]
    metadata: dict[str, Text]
    severity: Field[Severity | None] | None
    status: Field[Status | None] | None
    outcome: Field[Outcome | None] | None
    batch: Field[int | None] | None
    agent: Field[str] | None
    domains: tuple[Field[str], ...]
    assignee: Field[str] | None
    created: Field[str] | None
    updated: Field[str] | None
    code_repository: Field[str] | None
    locations: tuple[Location, ...]
    summary: Text | None
    categories: tuple[Category, ...]
    evidence: tuple[CodeBlock, ...]
    recommended_fix: Text | None
    checklist: tuple[ChecklistItem, ...]
    related: tuple[Relation, ...]
    reviews: tuple[Review, ...]
    resolution: Resolution | None
    reports: tuple[ReportLink, ...]
    remediation: Remediation | None
    sections: tuple[Section, ...]
