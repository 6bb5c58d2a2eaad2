"""The issues that a review found, under the heading of their severity, and the counts that it states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.entries import entries, labelled, text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part, nested
from finding_tickets.model.record import Text
from finding_tickets.model.review import Issue

_ISSUE = re.compile(r"(?P<id>[A-Za-z]+[- ]?\d+)\s*:\s*(?P<title>.+)", re.DOTALL)
_BOLD = re.compile(r"\*\*(?P<words>.+?)\*\*", re.DOTALL)
_COUNT = re.compile(r"\d{1,6}\b")


def read_issues(parts: Iterable[Part]) -> Iterator[Issue]:
    """Every issue; a severity with NONE below it has none."""
    for part in nested(parts):
        if part.name.startswith("issues") and not _is_summary(part):
            for severity in (each for each in part.parts if each.heading):
                yield from _of_severity(severity)


def read_issue_counts(parts: Iterable[Part], issues: Iterable[Issue]) -> dict[str, int]:
    """How many issues of each severity the review states; where it states none, how many it lists."""
    counts: dict[str, int] = {}
    for part in nested(parts):
        if part.name.startswith("issues"):
            for severity in (each for each in part.parts if each.heading and not _is_summary(part)):
                counts.setdefault(_severity(severity), 0)
    for issue in issues:
        counts[issue.severity] += 1
    for part in nested(parts):
        if part.name.startswith("issues") and _is_summary(part):
            stated = ((entry.key, _COUNT.match(entry.plain)) for entry in entries(part.source, part.blocks))
            counts.update({key: int(match[0]) for key, match in stated if match})
    return counts


def _is_summary(part: Part) -> bool:
    return "summary" in part.name


def _severity(part: Part) -> str:
    return part.name.partition(" ")[0]


def _of_severity(part: Part) -> Iterator[Issue]:
    headline: Text | None = None
    details: dict[str, str] = {}
    for block in part.blocks:
        text = _headline(part, block)
        if text and headline:
            yield from _issue(part, headline, details)
        if text:
            headline, details = text, {}
        details.update(_details(part, block))
    if headline:
        yield from _issue(part, headline, details)


def _headline(part: Part, block: Block) -> Text | None:
    """The text of a heading, or the bold words that begin a paragraph."""
    if block.kind == "Heading":
        return part.source.text(block.first, block.last)
    bold = _BOLD.match(part.source.raw(block.start, block.end)) if block.kind == "Paragraph" else None
    return part.source.text(block.start, block.start + len(bold[0].encode())) if bold else None


def _issue(part: Part, headline: Text, details: dict[str, str]) -> Iterator[Issue]:
    match = _ISSUE.fullmatch(plain(headline.raw))
    if match:
        yield Issue(
            raw=headline.raw,
            span=headline.span,
            severity=_severity(part),
            id=match["id"],
            title=match["title"],
            details=details,
        )


def _details(part: Part, block: Block) -> Iterator[tuple[str, str]]:
    """The labelled items of a list, each with everything nested in it."""
    for item in block.children if block.kind == "List" else ():
        for entry in labelled(part.source, *text_of(item)):
            yield entry.label, plain(part.source.raw(entry.value.span.start, item.end))
