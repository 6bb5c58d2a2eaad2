"""What a document is, which ID it has, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.metadata import Metadata, field
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Field, Text

Kind = Literal["finding", "review"]

_ID_LABELS = ("Ticket ID", "ID", "Review ID", "Ticket")
_REVIEW_TITLE = re.compile(r"\b(?:implementation|code|change|plan) review\b", re.IGNORECASE)
_FINDING_TITLE = re.compile(
    r"(?:(?:finding|bug)(?: ticket)?|ticket|fix|issue)\s*[:\u2013\u2014]\s*", re.IGNORECASE
)
_TASK = re.compile(r"\b(?P<word>task|step|phase|milestone)\s+(?P<number>\d+)\b", re.IGNORECASE)


def title_of(sections: Sequence[Part]) -> Text | None:
    """The text of the first heading of level 1, or else of the first heading."""
    headings = [part.heading for part in sections if part.heading and part.heading.first < part.heading.last]
    best = next((heading for heading in headings if heading.level == 1), next(iter(headings), None))
    return sections[0].source.text(best.first, best.last) if best else None


def kind_of(title: Text | None, metadata: Metadata, path: str) -> Kind | None:
    """Whether a document is a finding or a review; None where nothing says that it is either."""
    words = plain(title.raw) if title else ""
    if metadata.get("Severity") or _FINDING_TITLE.match(words):
        return "finding"
    if metadata.get("Plan Reference") or _REVIEW_TITLE.search(words.partition(":")[0]):
        return "review"
    pattern, stem = metadata.source.vocabulary.id_pattern, PurePosixPath(path).stem
    leading = _leading_id(metadata.source, words)
    named = re.fullmatch(pattern, stem, re.IGNORECASE) or (leading and stem.upper().startswith(leading))
    return "finding" if named or metadata.get("Ticket ID") else None


def read_title(source: Source, title: Text | None, document_id: str) -> Field[str]:
    """The title without the ID and the words that only say what kind of document it is."""
    if title is None:
        source.report("title", 0, "no title; write one as '# Finding Ticket: ...'")
        return field(source.text(0, 0), PurePosixPath(source.path).stem)
    words = plain(title.raw)
    before, _, after = words.partition(":")
    if _REVIEW_TITLE.search(before) or _leading_id(source, words) == document_id:
        rest = after.strip()
    else:
        rest = _FINDING_TITLE.sub("", words, count=1)
    return field(title, rest or words)


def read_id(source: Source, metadata: Metadata, title: Text | None) -> Field[str]:
    """The ID from the metadata, else from a title (``BUG-7: ...``, ``Task 5 ...``), else the file's name."""
    stated = metadata.string(*_ID_LABELS)
    if stated:
        return _checked(source, stated)
    words = plain(title.raw) if title else ""
    leading, task = _leading_id(source, words), _TASK.search(words.partition(":")[0])
    if title and leading:
        return field(title, leading)
    if title and task:
        return field(title, f"{task['word']}-{task['number']}".upper())
    name = PurePosixPath(source.path).stem
    hint = "add a row 'Ticket ID' to the metadata"
    source.report("id-missing", 0, f"no ID; the file's name stands in for it: {name}", hint=hint)
    return field(title or source.text(0, 0), name.upper())


def _leading_id(source: Source, title: str) -> str | None:
    """The ID with which a title begins: ``BUG-025: ...``."""
    match = re.match(rf"({source.vocabulary.id_pattern})\s*:", title)
    return match[1].upper() if match else None


def _checked(source: Source, stated: Field[str]) -> Field[str]:
    pattern = source.vocabulary.id_pattern
    if not re.fullmatch(pattern, stated.value, re.IGNORECASE):
        message = f"{stated.value!r} is not an ID of this register"
        source.report("id-form", stated.span.start, message, hint=f"the pattern is {pattern}")
    return field(stated, stated.value.upper())
