"""Which role a section has, by its title."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum

from finding_tickets.markdown.parts import Part, words_of
from finding_tickets.markdown.reviewers import is_cross_review
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Section


class Role(StrEnum):
    """What a section of a document is for."""

    METADATA = "metadata"
    LOCATION = "location"
    FILES_CHANGED = "files changed"
    SUMMARY = "summary"
    PROBLEM = "problem"
    DESCRIPTION = "description"
    FIX = "fix"
    VERIFICATION = "verification"
    RELATED = "related"
    REFERENCES = "references"
    CROSS_REVIEW = "cross-review"
    RESOLUTION = "resolution"
    REMEDIATION = "remediation"
    APPENDIX = "appendix"


_TITLES: Mapping[str, Role] = {
    "ticket metadata": Role.METADATA,
    "metadata": Role.METADATA,
    "resolution summary": Role.METADATA,
    "review metadata": Role.METADATA,
    "location": Role.LOCATION,
    "locations": Role.LOCATION,
    "files changed": Role.FILES_CHANGED,
    "summary": Role.SUMMARY,
    "one line summary": Role.SUMMARY,
    "problem": Role.PROBLEM,
    "symptom": Role.PROBLEM,
    "detailed description": Role.DESCRIPTION,
    "description": Role.DESCRIPTION,
    "root cause": Role.DESCRIPTION,
    "root cause analysis": Role.DESCRIPTION,
    "reproduction": Role.DESCRIPTION,
    "impact": Role.DESCRIPTION,
    "system context": Role.DESCRIPTION,
    "recommended fix": Role.FIX,
    "suggested fix": Role.FIX,
    "proposed fix": Role.FIX,
    "verification": Role.VERIFICATION,
    "verification checklist": Role.VERIFICATION,
    "regression test": Role.VERIFICATION,
    "related findings": Role.RELATED,
    "related tickets": Role.RELATED,
    "references": Role.REFERENCES,
    "resolution": Role.RESOLUTION,
    "closure notes": Role.RESOLUTION,
    "fix": Role.RESOLUTION,
    "implemented fix": Role.RESOLUTION,
    "fix applied": Role.RESOLUTION,
    "fix implemented": Role.RESOLUTION,
    "remediation": Role.REMEDIATION,
    "appendix": Role.APPENDIX,
    "original report reference": Role.APPENDIX,
}


def role_of(part: Part) -> Role | None:
    """The role of a section, a remark in brackets aside; None where its title is not known."""
    if is_cross_review(part.title):
        return Role.CROSS_REVIEW
    return _TITLES.get(part.name) or _TITLES.get(words_of(part.title.partition("(")[0]))


def by_role(sections: Iterable[Part]) -> Mapping[Role | None, list[Part]]:
    """The sections of each role, in the order of the file."""
    found: dict[Role | None, list[Part]] = defaultdict(list)
    for part in sections:
        found[role_of(part)].append(part)
    return found


def section(part: Part) -> Section:
    """The record of a section, with every byte that belongs to it."""
    source, heading = part.source, part.heading
    below = heading.end if heading else part.start
    return Section(
        level=heading.level if heading else 0,
        title=part.title,
        heading=source.span(part.start, below),
        body=Text(raw=source.raw(below, part.end), span=source.span(below, part.end)),
        known=role_of(part) is not None or heading is None or heading.level == 1,
    )
