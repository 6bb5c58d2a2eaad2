"""An implementation review: which of its sections says what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from finding_tickets.documents.checklists import read_checklist
from finding_tickets.documents.code import read_code
from finding_tickets.documents.identity import read_id, read_title
from finding_tickets.documents.inline import plain
from finding_tickets.documents.issues import read_issue_counts, read_issues
from finding_tickets.documents.locations import read_locations
from finding_tickets.documents.metadata import Metadata
from finding_tickets.documents.parts import Part, by_role, section
from finding_tickets.documents.places import location_of
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.requirements import read_requirements
from finding_tickets.documents.review_values import (
    read_artifacts,
    read_performance,
    read_scores,
    read_verdict,
)
from finding_tickets.documents.roles import Role
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Text
from finding_tickets.model.review import Artifact, Commits, ImplementationReview
from finding_tickets.model.ticket import Location

_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_RANGE = re.compile(r"([\w./~^@-]*\w[~^]*\d*)\.{2,3}([\w/~^@-][\w./~^@-]*)")
_NOT_CODE = (Role.REMEDIATION, Role.RESOLUTION)


def read_review(
    source: Source, sections: Sequence[Part], metadata: Metadata, title: Text | None
) -> ImplementationReview:
    """The review that ``sections`` make up."""
    roles = by_role(sections)
    identity = read_id(source, metadata, title)
    issues, artifacts = tuple(read_issues(sections)), tuple(read_artifacts(sections))
    stated = tuple(place for part in roles.get(Role.LOCATION, ()) for place in read_locations(part))
    return ImplementationReview(
        path=source.path,
        id=identity,
        title=read_title(source, metadata, title, identity.value),
        metadata=metadata.rows,
        reviewer=metadata.string("Reviewer"),
        date=metadata.string("Date"),
        commits=_commits(source, metadata),
        plan=metadata.string("Plan"),
        verdict=read_verdict(sections),
        code_repository=metadata.string("Code Repository"),
        requirements=tuple(read_requirements(sections)),
        issues=issues,
        issue_counts=read_issue_counts(sections, issues),
        scores=tuple(read_scores(sections)),
        performance_claims=tuple(read_performance(sections)),
        artifacts=artifacts,
        locations=stated or _files(artifacts),
        evidence=tuple(read_code(part for part in sections if part.role not in _NOT_CODE)),
        checklist=tuple(item for part in roles.get(Role.VERIFICATION, ()) for item in read_checklist(part)),
        remediation=next((read_remediation(part) for part in roles.get(Role.REMEDIATION, ())), None),
        sections=tuple(section(part) for part in sections),
    )


def _commits(source: Source, metadata: Metadata) -> Commits | None:
    """``base -> head``, ``base..head``, a row for each of them, or one commit alone."""
    entry = metadata.get("Commits")
    first, last = metadata.get("Base"), metadata.get("Head")
    if last and (entry is None or first):
        return Commits(
            raw=last.value.raw,
            span=last.value.span,
            base=_revision(first.plain) if first else None,
            head=_revision(last.plain),
        )
    if entry is None:
        return None
    hashes = _HASH.findall(plain(entry.value.raw)) or _between(entry.plain)
    if not hashes:
        source.report(
            "commits",
            entry.value.span.start,
            f"no commit in {entry.plain!r}",
            hint="write abc1234 -> def5678",
        )
        return None
    base = hashes[0] if len(hashes) > 1 else None
    return Commits(raw=entry.value.raw, span=entry.value.span, base=base, head=hashes[-1])


def _revision(text: str) -> str:
    return next(iter(_HASH.findall(text)), text)


def _between(text: str) -> Sequence[str]:
    """The two ends of a range of branches or tags: ``main..topic``."""
    match = _RANGE.search(text)
    return match.groups() if match else ()


def _files(artifacts: Sequence[Artifact]) -> tuple[Location, ...]:
    """The files that the change made or touched."""
    places = (location_of(each, each.name) for each in artifacts if "file" in each.group.lower())
    return tuple(place for place in places if place)
