"""What a document is, which ID it has, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from finding_tickets.documents.file_name import file_name
from finding_tickets.documents.inline import plain
from finding_tickets.documents.metadata import Metadata, field
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Field, Text

Kind = Literal["finding", "review"]

_REVIEW_TITLE = re.compile(
    r"\b(?:implementation|code|change|plan|task|phase|final|integration) review\b|\breview of\b",
    re.IGNORECASE,
)
_FINDING_TITLE = re.compile(
    r"(?:(?:finding|bug|fix|issue|defect|ticket)(?: (?:ticket|report|finding))?\s*[:\u2013\u2014]"
    r"|(?:finding|bug|fix|issue) (?:ticket|report)(?:\s+-\s|\s+(?=[A-Z][A-Z0-9]*-)|$))\s*",
    re.IGNORECASE,
)
_SEPARATORS = " :-\u2013\u2014"
_TASK = re.compile(r"\b(?P<word>task|step|phase|milestone)\s+(?P<number>\d+)\b", re.IGNORECASE)


def title_of(sections: Sequence[Part]) -> Text | None:
    """The text of the first heading of level 1, or else of the first heading that is no section's."""
    headed = [part for part in sections if part.heading and part.heading.first < part.heading.last]
    titles = [part for part in headed if part.heading and part.heading.level == 1]
    best = next(iter(titles or [part for part in headed[:1] if part.role is None]), None)
    heading = best.heading if best else None
    return sections[0].source.text(heading.first, heading.last) if heading else None


def kind_of(title: Text | None, metadata: Metadata, path: str) -> Kind | None:
    """Whether a document is a finding or a review; None where nothing says that it is either."""
    words = plain(title.raw) if title else ""
    if metadata.get("Severity") or _FINDING_TITLE.match(words):
        return "finding"
    if metadata.get("Plan") or _REVIEW_TITLE.search(_before(words)):
        return "review"
    vocabulary, stem = metadata.source.vocabulary, PurePosixPath(path).stem
    leading, name = _leading_id(metadata.source, words), file_name(path, vocabulary)
    named = (
        vocabulary.an_id.fullmatch(stem),
        name.severity,
        name.id and metadata.get("Status"),
        leading and stem.upper().startswith(leading),
        metadata.get("ID"),
    )
    return "finding" if any(named) else None


def read_title(source: Source, metadata: Metadata, title: Text | None, document_id: str) -> Field[str]:
    """The title without the ID and the words that only say what kind of document it is."""
    stated = metadata.string("Title")
    if title is None and stated:
        return stated
    if title is None:
        source.report("title", 0, "no title; write one as '# Finding Ticket: ...'")
        return field(source.text(0, 0), PurePosixPath(source.path).stem)
    words = plain(title.raw)
    if _REVIEW_TITLE.search(_before(words)):
        rest = words[len(_before(words)) :].lstrip(_SEPARATORS)
    else:
        rest = _FINDING_TITLE.sub("", words, count=1)
        own = re.match(rf"\[?{re.escape(document_id)}\]?(?![\w-])", rest, re.IGNORECASE)
        rest = rest[own.end() :].lstrip(_SEPARATORS) if own else rest
    return field(title, rest or (stated.value if stated else words))


def read_id(source: Source, metadata: Metadata, title: Text | None) -> Field[str]:
    """The ID from the metadata, else from a title (``BUG-7: ...``, ``Task 5 ...``), else the file's name."""
    stated = metadata.string("ID")
    if stated:
        return _checked(source, stated)
    words = plain(title.raw) if title else ""
    before = _before(words)
    leading, task = (
        _leading_id(source, words),
        _TASK.search(words if _REVIEW_TITLE.search(before) else before),
    )
    if title and leading:
        return field(title, leading)
    if title and task:
        return field(title, f"{task['word']}-{task['number']}".upper())
    name = file_name(source.path, source.vocabulary)
    if name.id and name.severity:
        return field(source.text(0, 0), name.id)
    stem = PurePosixPath(source.path).stem
    hint = "add a row 'Ticket ID' to the metadata"
    source.report("id-missing", 0, f"no ID; the file's name stands in for it: {stem}", hint=hint)
    return field(title or source.text(0, 0), name.id if name.id and metadata.get("Status") else stem.upper())


def _before(title: str) -> str:
    """What stands before the first colon or dash of a title."""
    return re.split(r":|\s[-\u2013\u2014]\s", title, maxsplit=1)[0]


def _leading_id(source: Source, title: str) -> str | None:
    """The ID with which a title begins: ``BUG-025: ...``, ``[BUG-025] ...``, ``Bug Ticket: BUG-025: ...``."""
    match = re.match(
        rf"(?:\[({source.vocabulary.id_pattern})\]|({source.vocabulary.id_pattern})\s*(?::|\s[-\u2013\u2014]\s|$))",
        _FINDING_TITLE.sub("", title, count=1),
    )
    return (match[1] or match[2]).upper() if match else None


def _checked(source: Source, stated: Field[str]) -> Field[str]:
    """The ID that a row states; a remark behind it is left out, another form is reported."""
    pattern = source.vocabulary.id_pattern
    match = re.match(rf"(?:{pattern})(?=$|\s|\()", stated.value, re.IGNORECASE)
    if match is None:
        message = f"{stated.value!r} is not an ID of this register"
        source.report("id-form", stated.span.start, message, hint=f"the pattern is {pattern}")
    return field(stated, (match[0] if match else stated.value).upper())
