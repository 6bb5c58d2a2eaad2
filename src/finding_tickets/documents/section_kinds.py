"""Which kind of section a heading begins: the one table of headings."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from finding_tickets.documents.source import words_of


class SectionKind(StrEnum):
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


CROSS_REVIEW_TITLE = re.compile(r"(?:cross|peer)\W*(?:agent\W*)?reviews?\b", re.IGNORECASE)
_REVIEWS_TITLE = re.compile(
    r"(?:(?:(?:specialist|expert|agent|domain|independent)s?|reviewer)\W+)?(?:reviews?|verdicts)"
    r"(?: (?:verdicts?|summary|notes))?|reviewers?",
    re.IGNORECASE,
)
_PROPOSED = r"(?:recommended|suggested|proposed|possible|potential)"
_SOLUTION = r"(?:solutions?|changes?|actions?|approach(?:es)?|mitigations?)"
_ON_RESOLUTION = r"(?:notes?|details?|summary|status|statement|decision|analysis|update|log|history|evidence)"
_TITLES: dict[SectionKind, tuple[str, ...]] = {
    SectionKind.METADATA: (r"(?:(?:ticket|review|bug|finding|issue) )?(?:metadata|information)",),
    SectionKind.LOCATION: (r"(?:(?:code|affected|file) )?(?:location|file)s?|affected code|where",),
    SectionKind.FILES_CHANGED: (r"files? (?:changed|modified|touched)|(?:changed|modified) files?",),
    SectionKind.SUMMARY: (r"(?:one line |executive )?summary|overview|tl ?dr",),
    SectionKind.PROBLEM: (
        r"(?:the )?(?:problem|symptom|issue|bug)s?(?: statement| description)?|what s wrong",
    ),
    SectionKind.DESCRIPTION: (
        r"(?:detailed |full )?(?:description|analysis|details)|technical (?:analysis|details)",
        r"root cause.*|(?:steps to )?reprod\w+.*|(?:code )?evidence|impact.*|system context",
        r"context|background|why this matters|current (?:behaviou?r|state|status)",
    ),
    SectionKind.FIX: (
        rf"{_PROPOSED} (?:\w+ )?(?:fix(?:es)?|resolution|implementation|code|{_SOLUTION})\b.*",
        rf"(?:fix|resolution) (?:options?|plan|proposals?)|recommend(?:ed|ations?)|{_SOLUTION}",
    ),
    SectionKind.VERIFICATION: (
        r"(?:verification|validation)(?: (?:checklist|steps?|plan|criteria|strategy|results?))?",
        r"how to (?:verify|validate|test)\b.*|test(?:ing)? plan|testing",
        r"regression tests?|acceptance criteria|definition of done|.*checklist",
    ),
    SectionKind.RELATED: (
        r"related(?: (?:finding|ticket|issue|bug)s?)?(?: and .*)?|see also|linked tickets|dependencies",
        r"(?:related |known )?duplicates?(?: (?:finding|ticket)s?)?",
    ),
    SectionKind.REFERENCES: (r"references|links",),
    SectionKind.CORRECTION: (
        r"(?:corrections?|errat(?:um|a)|retract(?:ion|ed)|amendment)\b.*",
        r"correct(?:ed|ive) (?:fix|action|resolution|status|analysis|verdict|assessment)\b.*",
        r"(?:fix|resolution|ticket|status|post fix|post closure) corrections?",
    ),
    SectionKind.RESOLUTION: (
        rf"(?:final )?(?:resolution|closure|closing|disposition)(?: {_ON_RESOLUTION})*",
        r"(?:final )?(?:status|decision|outcome)",
        r"(?:updated|revised) (?:resolution|fix)|resolved|closed|implementation (?:notes|summary)",
        r"(?:the |final |actual )?fix(?:es)?(?: applied| implemented| description| details| summary)?",
        r"(?:applied|implemented|final|actual) fix(?:es)?|changes made|fixed",
    ),
    SectionKind.REMEDIATION: (r"remediation",),
    SectionKind.APPENDIX: (r"appendix.*|original reports?.*|(?:source )?reports?(?: references?)?",),
}
PLAIN_TITLE = re.compile(
    r"(?:ticket )?metadata|location|summary|(?:detailed )?description|remediation|verification|appendix"
    r"|related findings|cross review|resolution|recommended fix"
)
"""A title that is nothing but the name of a section: one of level 1 is not the document's title then."""

_COMPILED = tuple((kind, re.compile("|".join(patterns))) for kind, patterns in _TITLES.items())
_NUMBER = re.compile(r"(?:\d+[.)]\s+)+")
_ASIDE = re.compile(r"\(.*|[:\u2013\u2014].*|\s-\s.*", re.DOTALL)
_SUMMARY_OF_FIX = "resolution summary"


# Most titles are those of a template: asking again what they mean would take a fifth of reading a ticket.
@lru_cache(maxsize=1024)
def kind_of_title(title: str) -> tuple[SectionKind | None, bool]:
    """The kind that a title gives, a number before it and a remark behind it aside; None where not known.

    And whether it may just as well be that of metadata which say how a fix was made.
    """
    if CROSS_REVIEW_TITLE.search(title) or _REVIEWS_TITLE.fullmatch(title.strip()):
        return SectionKind.CROSS_REVIEW, False
    title = _NUMBER.sub("", title.strip(), count=1)
    names = (words_of(title), words_of(_ASIDE.sub("", title, count=1)))
    kinds = (kind for name in names for kind, pattern in _COMPILED if pattern.fullmatch(name))
    return next(kinds, None), names[0] == _SUMMARY_OF_FIX
