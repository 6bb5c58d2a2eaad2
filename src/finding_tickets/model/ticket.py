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
    """One place in the code a ticket speaks of; what is not stated is None or empty.

    ``symbol`` is what is written, ``symbols`` are the names within it: ``A.f`` and ``g`` for
    ``A.f(), g() in the loop``.
    """

    file: str | None
    lines: tuple[LineRange, ...]
    symbol: str | None
    symbols: tuple[str, ...]


class Category(Text):
    """One line of the category checklist."""

    name: str
    ticked: bool


class Review(Text):
    """One cross-review; ``opinion`` is None where the verdict is not one of the vocabulary.

    ``reviewer`` has the register's word for the reviewer as its value, and is None where nobody is named.
    ``condition`` is what the verdict adds to its opinion: ``with caveat``. ``remarks`` are what the reviewer
    writes beside the evaluation.
    """

    reviewer: Field[str] | None
    verdict: Field[str]
    opinion: Opinion | None
    condition: str
    evaluation: Text | None
    remarks: tuple[Text, ...]
    date: Field[str] | None

    @property
    def words(self) -> str | None:
        """The evaluation and the remarks, in paragraphs; None where there is neither."""
        pieces = [text.raw for text in (self.evaluation, *self.remarks) if text and text.raw]
        return "\n\n".join(pieces) if pieces else None


class Relation(Text):
    """A link to another ticket; ``relationship`` is ``related`` where the ticket does not say."""

    id: str
    relationship: Relationship
    note: str


class ChecklistItem(Text):
    """One line of a checklist: of the verification's, or of one in the resolution."""

    text: str
    done: bool


class CodeBlock(Text):
    """A fenced block: its language, its content and, where its first comment names one, the code's place.

    ``places`` are all places that comments of the block name, each with its file, lines or both.
    """

    language: str
    code: str
    location: str | None
    places: tuple[Location, ...]


class ReportLink(Text):
    """Where a finding was first reported: a file and a section of it."""

    file: str
    section: str


class Resolution(Text):
    """The section that says how the ticket was resolved; ``outcome`` is None where it does not say.

    ``proposed`` marks what was recommended when the ticket was filed and that nobody has acted upon: the
    ticket is not closed, and the section has neither a statement nor a date. ``duplicate_of`` is the ID of
    the ticket that this one repeats.
    """

    outcome: Outcome | None
    proposed: bool
    duplicate_of: str | None


class SeverityChange(Text):
    """A severity that was looked at again; ``original`` is None where only the new one is stated."""

    original: Severity | None
    revised: Severity

    @property
    def confirmed(self) -> bool:
        """Whether the severity stayed what it was."""
        return self.original is self.revised


class CheckedClaim(Text):
    """A row of a table of claims: whether somebody found it true; ``holds`` is None for neither.

    ``status`` is the finding as written, ``evidence`` what it rests on.
    """

    claim: str
    status: str
    holds: bool | None
    evidence: str


class Correction(Text):
    """A section that takes back or mends an earlier fix; ``statement`` is what it says of its status."""

    title: str
    date: str | None
    statement: Text | None


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
    """A finding ticket. ``path`` is relative to the register's root; a field that is not there is None.

    A value that comes from the file's name has an empty span. ``closed`` is when the ticket was resolved, as
    it is written.
    """

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
    closed: Field[str] | None
    severity_changes: tuple[SeverityChange, ...]
    checked_claims: tuple[CheckedClaim, ...]
    corrections: tuple[Correction, ...]
    reports: tuple[ReportLink, ...]
    remediation: Remediation | None
    sections: tuple[Section, ...]
