"""Which role a section has, by its title."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from finding_tickets.documents.inline import words_of
from finding_tickets.documents.reviewers import is_cross_review


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
    CORRECTION = "correction"
    REMEDIATION = "remediation"
    APPENDIX = "appendix"


_PROPOSED = r"(?:recommended|suggested|proposed|possible|potential)"
_SOLUTION = r"(?:solutions?|changes?|actions?|approach(?:es)?|mitigations?)"
_ON_RESOLUTION = r"(?:notes?|details?|summary|status|statement|decision|analysis|update|log|history|evidence)"
_TITLES: tuple[tuple[Role, str], ...] = (
    (Role.METADATA, r"(?:(?:ticket|review|bug|finding|issue) )?(?:metadata|information)"),
    (Role.LOCATION, r"(?:(?:code|affected|file) )?(?:location|file)s?|affected code|where"),
    (Role.FILES_CHANGED, r"files? (?:changed|modified|touched)|(?:changed|modified) files?"),
    (Role.SUMMARY, r"(?:one line |executive )?summary|overview|tl ?dr"),
    (Role.PROBLEM, r"(?:the )?(?:problem|symptom|issue|bug)s?(?: statement| description)?|what s wrong"),
    (
        Role.DESCRIPTION,
        r"(?:detailed |full )?(?:description|analysis|details)|technical (?:analysis|details)",
    ),
    (Role.DESCRIPTION, r"root cause.*|(?:steps to )?reprod\w+.*|(?:code )?evidence|impact.*|system context"),
    (Role.DESCRIPTION, r"context|background|why this matters|current (?:behaviou?r|state|status)"),
    (Role.FIX, rf"{_PROPOSED} (?:\w+ )?(?:fix(?:es)?|resolution|implementation|code|{_SOLUTION})\b.*"),
    (Role.FIX, rf"(?:fix|resolution) (?:options?|plan|proposals?)|recommend(?:ed|ations?)|{_SOLUTION}"),
    (
        Role.VERIFICATION,
        r"(?:verification|validation)(?: (?:checklist|steps?|plan|criteria|strategy|results?))?",
    ),
    (Role.VERIFICATION, r"how to (?:verify|validate|test)\b.*|test(?:ing)? plan|testing"),
    (Role.VERIFICATION, r"regression tests?|acceptance criteria|definition of done|.*checklist"),
    (
        Role.RELATED,
        r"related(?: (?:finding|ticket|issue|bug)s?)?(?: and .*)?|see also|linked tickets|dependencies",
    ),
    (Role.RELATED, r"(?:related |known )?duplicates?(?: (?:finding|ticket)s?)?"),
    (Role.REFERENCES, r"references|links"),
    (Role.CORRECTION, r"(?:corrections?|errat(?:um|a)|retract(?:ion|ed)|amendment)\b.*"),
    (Role.CORRECTION, r"correct(?:ed|ive) (?:fix|action|resolution|status|analysis|verdict|assessment)\b.*"),
    (Role.CORRECTION, r"(?:fix|resolution|ticket|status|post fix|post closure) corrections?"),
    (Role.RESOLUTION, rf"(?:final )?(?:resolution|closure|closing|disposition)(?: {_ON_RESOLUTION})*"),
    (Role.RESOLUTION, r"(?:final )?(?:status|decision|outcome)"),
    (
        Role.RESOLUTION,
        r"(?:updated|revised) (?:resolution|fix)|resolved|closed|implementation (?:notes|summary)",
    ),
    (
        Role.RESOLUTION,
        r"(?:the |final |actual )?fix(?:es)?(?: applied| implemented| description| details| summary)?",
    ),
    (Role.RESOLUTION, r"(?:applied|implemented|final|actual) fix(?:es)?|changes made|fixed"),
    (Role.REMEDIATION, r"remediation"),
    (Role.APPENDIX, r"appendix.*|original reports?.*|(?:source )?reports?(?: references?)?"),
)
PLAIN_TITLES = frozenset(
    {
        "ticket metadata",
        "metadata",
        "location",
        "summary",
        "description",
        "detailed description",
        "remediation",
    }
    | {"verification", "related findings", "cross review", "resolution", "appendix", "recommended fix"}
)
"""Titles that are nothing but the name of a section, so that one of level 1 is not the document's title."""

_COMPILED = tuple((role, re.compile(pattern)) for role, pattern in _TITLES)
_NUMBER = re.compile(r"(?:\d+[.)]\s+)+")
_ASIDE = re.compile(r"\(.*|[:\u2013\u2014].*|\s-\s.*", re.DOTALL)
_SUMMARY_OF_FIX = "resolution summary"


# Most titles are those of a template: asking again what they mean would take a fifth of reading a ticket.
@lru_cache(maxsize=1024)
def meaning(title: str) -> tuple[Role | None, bool]:
    """The role that a title gives, a number before it and a remark behind it aside; None where not known.

    And whether it may just as well be that of metadata which say how a fix was made.
    """
    if is_cross_review(title):
        return Role.CROSS_REVIEW, False
    title = _NUMBER.sub("", title.strip(), count=1)
    names = (words_of(title), words_of(_ASIDE.sub("", title, count=1)))
    roles = (role for name in names for role, pattern in _COMPILED if pattern.fullmatch(name))
    return next(roles, None), names[0] == _SUMMARY_OF_FIX
