"""A finding ticket: which of its sections says what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from finding_tickets.documents.checklists import checked, read_categories, read_checklist
from finding_tickets.documents.claim_tables import read_checked_claims
from finding_tickets.documents.code import read_code
from finding_tickets.documents.corrections import read_corrections
from finding_tickets.documents.file_name import file_name
from finding_tickets.documents.identity import read_id, read_title
from finding_tickets.documents.inline import plain
from finding_tickets.documents.locations import read_locations, read_mentioned, stated_locations
from finding_tickets.documents.metadata import Metadata, field
from finding_tickets.documents.outcomes import outcome_of
from finding_tickets.documents.parts import Part, by_role, section
from finding_tickets.documents.phrases import only_word_in
from finding_tickets.documents.relations import read_references, read_relations, stated_relations
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.reports import read_reports
from finding_tickets.documents.resolutions import (
    read_done,
    read_outcome,
    read_resolution,
    stated_outcome,
)
from finding_tickets.documents.reviewers import reviewer_word
from finding_tickets.documents.reviews import read_reviews, reviewing
from finding_tickets.documents.roles import Role
from finding_tickets.documents.severities import read_changes
from finding_tickets.documents.source import Source
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Location, Relation, Ticket
from finding_tickets.model.vocabulary import Outcome, Severity, Status, word_for

T = TypeVar("T")

_SUMMARIES = (
    "Summary",
    "Problem",
    "Description",
    "Issue",
    "Symptom",
    "Observed Behaviour",
    "Observed Behavior",
)
_FIXES = ("Recommended Fix", "Proposed Fix", "Suggested Fix", "Fix Plan", "Fix", "Recommendation")
_FIXED = ("fixed", "datefixed", "fixedon")
_CLOSED = frozenset(["closed", "resolved", "fixed", "date", "closedon", "resolvedon", "fixedon", "fixdate"])
_DATE = re.compile(r"\d{4}-\d\d-\d\d")

Ended = Field[Outcome | None] | None
Roles = Mapping[Role | None, list[Part]]

# All other sections are in the ticket's own words.
_NOT_OWN = (Role.METADATA, Role.CROSS_REVIEW)
_SETTLED = frozenset([Status.CLOSED, Status.FIXED, Status.WONT_FIX, Status.INVALID])
_OUTCOME_OF_STATUS = {
    Status.FIXED: Outcome.FIXED,
    Status.WONT_FIX: Outcome.WONT_FIX,
    Status.INVALID: Outcome.NOT_A_BUG,
}


def read_finding(source: Source, sections: Sequence[Part], metadata: Metadata, title: Text | None) -> Ticket:
    """The ticket that ``sections`` make up."""
    roles, words = by_role(sections), source.vocabulary
    identity = read_id(source, metadata, title)
    status = metadata.word("Status", Status, words.statuses)
    described = [*roles.get(Role.PROBLEM, ()), *roles.get(Role.DESCRIPTION, ()), *roles.get(None, ())]
    stating = [part for part in sections if part.role not in _NOT_OWN]
    resolution, ended = _resolution(roles)
    settled = status is not None and status.value in _SETTLED
    return Ticket(
        path=source.path,
        id=identity,
        title=read_title(source, metadata, title, identity.value),
        metadata=metadata.rows,
        severity=_severity(source, metadata),
        status=status,
        outcome=_outcome(source, metadata, roles, (resolution, ended), status),
        batch=metadata.number("Batch"),
        agent=_agent(source, metadata),
        domains=_domains(source, metadata),
        assignee=metadata.string("Assignee"),
        created=metadata.string("Created"),
        updated=metadata.string("Updated"),
        code_repository=metadata.string("Code Repository"),
        locations=_locations(source, metadata, roles),
        summary=next(_summaries(roles), None) or _flat(metadata, _SUMMARIES),
        categories=_each(read_categories, roles, Role.SUMMARY),
        evidence=tuple(read_code(described)),
        recommended_fix=next((part.body for part in roles.get(Role.FIX, ())), None)
        or _flat(metadata, _FIXES),
        checklist=tuple(item for part in checked(sections) for item in read_checklist(part)),
        related=_relations(source, metadata, roles),
        reviews=tuple(review for part in reviewing(sections) for review in read_reviews(part)),
        resolution=read_resolution(resolution, ended, settled=settled) if resolution else None,
        closed=metadata.string("Closed") or _closed(roles),
        severity_changes=tuple(read_changes(source, metadata.get("Severity"), _acting(sections))),
        checked_claims=tuple(read_checked_claims(stating)),
        corrections=tuple(read_corrections(stating)),
        reports=_each(read_reports, roles, Role.APPENDIX),
        remediation=next((read_remediation(part) for part in roles.get(Role.REMEDIATION, ())), None),
        sections=tuple(section(part) for part in sections),
    )


def _severity(source: Source, metadata: Metadata) -> Field[Severity | None] | None:
    """What the metadata state, else what the file's name does."""
    words = source.vocabulary.severities
    stated = metadata.word("Severity", Severity, words, only_word_in)
    named = None if stated else file_name(source.path, source.vocabulary).severity
    return Field("", source.span(0, 0), Severity(named)) if named else stated


def _agent(source: Source, metadata: Metadata) -> Field[str] | None:
    """The first agent that is named, in the register's word where it has one."""
    stated, each = metadata.string("Agent"), metadata.strings("Agent")
    if stated is None or not each:
        return None
    name = each[0].value
    return field(stated, reviewer_word(name, source.vocabulary) or name)


def _domains(source: Source, metadata: Metadata) -> tuple[Field[str], ...]:
    """What the metadata state, else what the file's name does."""
    stated = metadata.strings("Domain")
    named = None if stated else file_name(source.path, source.vocabulary).domain
    return (field(source.text(0, 0), named),) if named else stated


def _each(read: Callable[[Part], tuple[T, ...]], roles: Roles, role: Role) -> tuple[T, ...]:
    """What ``read`` finds in every section of a role."""
    return tuple(found for part in roles.get(role, ()) for found in read(part))


def _closed(roles: Roles) -> Field[str] | None:
    """The date that a resolution states."""
    stated = (entry for part in roles.get(Role.RESOLUTION, ()) for entry in part.entries)
    dated = (entry for entry in stated if entry.key in _CLOSED and _DATE.match(entry.plain))
    return next((field(entry.value, entry.plain) for entry in dated), None)


def _acting(sections: Sequence[Part]) -> list[Part]:
    """The sections that tell what was done with the ticket."""
    return [
        part for part in sections if part.role in (Role.RESOLUTION, Role.CORRECTION) or _on_severity(part)
    ]


def _on_severity(part: Part) -> bool:
    return part.role is None and "severity" in part.name.split()


def _resolution(roles: Roles) -> tuple[Part | None, Ended]:
    """The first resolution that states an outcome, else the first one, with what it states."""
    parts = roles.get(Role.RESOLUTION, ())
    stated = ((part, read_outcome(part)) for part in parts)
    return next(((part, ended) for part, ended in stated if ended), (next(iter(parts), None), None))


def _outcome(
    source: Source,
    metadata: Metadata,
    roles: Roles,
    resolved: tuple[Part | None, Ended],
    status: Field[Status | None] | None,
) -> Field[Outcome | None] | None:
    """How the ticket was resolved.

    By its metadata, else by the newest correction, its resolution, a proposal that is marked as done, or its
    status.
    """
    stated = metadata.get("Resolution")
    if stated:
        return stated_outcome(source, stated.value)
    resolution, ended = resolved
    told = chain(
        (read_outcome(part) for part in reversed(roles.get(Role.CORRECTION, ()))),
        [ended],
        (read_done(part) for part in roles.get(Role.FIX, ())),
        [_by_status(source, status), _by_date(metadata)],
    )
    outcome = next((each for each in told if each), None)
    if outcome is None and resolution:
        hint = "write **Status:** and one of " + ", ".join(source.vocabulary.outcomes)
        level = Level.WARNING if status and status.value is Status.CLOSED else Level.NOTE
        message = "the resolution states no outcome"
        source.report("resolution-outcome", resolution.start, message, hint=hint, level=level)
    return outcome


def _by_status(source: Source, status: Field[Status | None] | None) -> Field[Outcome | None] | None:
    """The outcome that a status means, or that it names beside: ``closed (won't fix)``."""
    if status is None:
        return None
    outcome = _OUTCOME_OF_STATUS.get(status.value) if status.value else None
    words, phrase = source.vocabulary, plain(status.raw)
    if status.value is Status.CLOSED and (
        word_for(phrase, words.outcomes) or not word_for(phrase, words.statuses)
    ):
        outcome = outcome_of(phrase, words.outcomes)
    return Field(status.raw, status.span, outcome) if outcome else None


def _by_date(metadata: Metadata) -> Field[Outcome | None] | None:
    """A row that says when the finding was fixed says that it was."""
    row = next(
        (entry for name in _FIXED if (entry := metadata.entries.get(name)) and _DATE.match(entry.plain)), None
    )
    return Field(row.value.raw, row.value.span, Outcome.FIXED) if row else None


def _locations(source: Source, metadata: Metadata, roles: Roles) -> tuple[Location, ...]:
    """The location section's places; without one, those in the metadata, or the files that were changed."""
    if Role.LOCATION in roles:
        return _each(read_locations, roles, Role.LOCATION)
    stated = tuple(stated_locations(source, metadata.entries.values()))
    return stated or _each(read_mentioned, roles, Role.FILES_CHANGED)


def _flat(metadata: Metadata, names: Sequence[str]) -> Text | None:
    """What a ticket without sections says under the first of the labels that it has."""
    entry = next((found for name in names if (found := metadata.get(name))), None)
    return entry.value if entry else None


def _relations(source: Source, metadata: Metadata, roles: Roles) -> tuple[Relation, ...]:
    return (
        *stated_relations(source, metadata.entries.values()),
        *_each(read_relations, roles, Role.RELATED),
        *_each(read_references, roles, Role.REFERENCES),
    )


def _summaries(roles: Roles) -> Iterator[Text]:
    """What may be the summary, best first: the one-line one, paragraphs of what says what the problem is."""
    for part in (*roles.get(Role.SUMMARY, ()), *roles.get(Role.PROBLEM, ())):
        labelled = (entry.value for entry in part.entries if entry.key.endswith("summary"))
        paragraphs = (
            part.source.text(each.start, each.end) for each in part.blocks if each.kind == "Paragraph"
        )
        yield from chain(labelled, paragraphs)
