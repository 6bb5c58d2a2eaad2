"""What a document is, which ID it has, and what it is called: by its metadata, its title, its file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from finding_tickets.documents.fields import Metadata
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Excerpt, Source, Values
from finding_tickets.model.vocabulary import Vocabulary, word_for

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
_DOMAIN_AND_SLUG = 2


class FileName(NamedTuple):
    """What a file's name says, as in ``BUG-013-P2-domain-slug.md``; None for what it does not.

    ``domain`` is the first word behind the severity where more words follow it.
    """

    id: str | None
    severity: str | None
    domain: str | None


def file_name(path: str, vocabulary: Vocabulary) -> FileName:
    """The parts of the name of the file at ``path``; the ID is the shortest beginning that is one."""
    pieces = [piece for piece in re.split(r"[-_ ]", PurePosixPath(path).stem) if piece]
    for count in range(1, len(pieces) + 1):
        name = "-".join(pieces[:count])
        if vocabulary.an_id.fullmatch(name):
            behind = pieces[count:]
            severity = word_for(behind[0], vocabulary.severities) if behind else None
            domain = behind[1] if severity and len(behind) > _DOMAIN_AND_SLUG else None
            return FileName(name.upper(), severity, domain)
    return FileName(None, None, None)


def title_of(parts: Sequence[DocumentPart]) -> Excerpt | None:
    """The text of the first heading of level 1, or else of the first heading that is no section's."""
    headed = [part for part in parts if part.heading and part.heading.first < part.heading.last]
    # A file may begin with a section; its heading is not the title then.
    titles = [part for part in headed if part.heading and part.heading.level == 1]
    best = next(iter(titles or [part for part in headed[:1] if part.kind is None]), None)
    return best.headline if best else None


def kind_of(title: Excerpt | None, metadata: Metadata) -> Literal["finding", "review"] | None:
    """Whether a document is a finding or a review; None where nothing says that it is either."""
    source, words = metadata.source, title.plain if title else ""
    if metadata.get("Severity") or _FINDING_TITLE.match(words):
        return "finding"
    if metadata.get("Plan") or _REVIEW_TITLE.search(_before_colon(words)):
        return "review"
    stem, name = PurePosixPath(source.path).stem, file_name(source.path, source.vocabulary)
    leading = _leading_id(source, words)
    named = (
        source.vocabulary.an_id.fullmatch(stem),
        name.severity,
        name.id and metadata.get("Status"),
        leading and stem.upper().startswith(leading),
        metadata.get("ID"),
    )
    return "finding" if any(named) else None


def read_id(metadata: Metadata, title: Excerpt | None) -> Values:
    """The ID from the metadata, else from a title (``BUG-7: ...``, ``Task 5 ...``), else the file's name."""
    source, vocabulary = metadata.source, metadata.source.vocabulary
    stated = metadata.get("ID")
    if stated:
        match = re.match(rf"(?:{vocabulary.id_pattern})(?=$|\s|\()", stated.plain, re.IGNORECASE)
        if match is None:
            hint = f"the pattern is {vocabulary.id_pattern}"
            stated.value.report("id-form", f"{stated.plain!r} is not an ID of this register", hint)
        return stated.value.record(value=(match[0] if match else stated.plain).upper())
    words = title.plain if title else ""
    before = _before_colon(words)
    leading = _leading_id(source, words)
    # "Task 5" names a review; in the title of a finding it may be part of the sentence.
    task = _TASK.search(words if _REVIEW_TITLE.search(before) else before)
    if title and leading:
        return title.record(value=leading)
    if title and task:
        return title.record(value=f"{task['word']}-{task['number']}".upper())
    name, stem = file_name(source.path, vocabulary), PurePosixPath(source.path).stem
    if name.id and name.severity:
        return source.text(0, 0).record(value=name.id)
    hint = "add a row 'Ticket ID' to the metadata"
    source.report("id-missing", 0, f"no ID; the file's name stands in for it: {stem}", hint=hint)
    given = name.id if name.id and metadata.get("Status") else stem.upper()
    return (title or source.text(0, 0)).record(value=given)


def read_title(metadata: Metadata, title: Excerpt | None, document_id: str) -> Values:
    """The title without the ID and the words that only say what kind of document it is."""
    stated = metadata.get("Title")
    if title is None and stated:
        return stated.value.record(value=stated.plain)
    if title is None:
        source = metadata.source
        source.report("title", 0, "no title; write one as '# Finding Ticket: ...'")
        return source.text(0, 0).record(value=PurePosixPath(source.path).stem)
    words = title.plain
    before = _before_colon(words)
    if _REVIEW_TITLE.search(before):
        rest = words[len(before) :].lstrip(_SEPARATORS)
    else:
        rest = _FINDING_TITLE.sub("", words, count=1)
        own = re.match(rf"\[?{re.escape(document_id)}\]?(?![\w-])", rest, re.IGNORECASE)
        rest = rest[own.end() :].lstrip(_SEPARATORS) if own else rest
    return title.record(value=rest or (stated.plain if stated else words))


def _before_colon(title: str) -> str:
    """What stands before the first colon or dash of a title."""
    return re.split(r":|\s[-\u2013\u2014]\s", title, maxsplit=1)[0]


def _leading_id(source: Source, title: str) -> str | None:
    """The ID with which a title begins: ``BUG-025: ...``, ``[BUG-025] ...``, ``Bug Ticket: BUG-025: ...``."""
    pattern = source.vocabulary.id_pattern
    match = re.match(
        rf"(?:\[({pattern})\]|({pattern})\s*(?::|\s[-\u2013\u2014]\s|$))",
        _FINDING_TITLE.sub("", title, count=1),
    )
    return (match[1] or match[2]).upper() if match else None
