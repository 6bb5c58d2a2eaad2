"""The issues that a review found, under the heading of their severity, and the counts that it states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.entries import labelled, text_of
from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text
from finding_tickets.model.review import Issue

_ISSUE = re.compile(
    r"(?:\W*(?P<id>[A-Za-z]+[- ]?\d+|\d+)\W*?\s*[:.)\u2013\u2014-]\s+)?(?P<title>.+)", re.DOTALL
)
_BOLD = re.compile(r"(?:\d+[.)]\s*)?\*\*(?P<words>.+?)\*\*", re.DOTALL)
_LABEL_END = re.compile(r":|.\s*:")
_COUNT = re.compile(r"\d{1,6}\b")
_SEVERITIES = frozenset(
    [
        "critical",
        "blocker",
        "blocking",
        "high",
        "major",
        "important",
        "medium",
        "moderate",
        "minor",
        "low",
        "trivial",
        "nit",
        "nits",
        "nitpicks",
        "suggestion",
        "suggestions",
        "optional",
        "p0",
        "p1",
        "p2",
        "p3",
        "p4",
    ]
)
_ISSUES = frozenset(
    ["issue", "issues", "suggestion", "suggestions", "findings", "concerns", "problems", "bugs", "nits"]
)
_COLUMN = re.compile(r"issue|description|title|finding|problem|summary")
_NAME = re.compile(r"id|#|no\.?")


def read_issues(parts: Iterable[Part]) -> Iterator[Issue]:
    """Every issue; a severity with NONE below it has none."""
    for part in _groups(parts):
        for severity in _severities(part):
            yield from _of_severity(severity)
        for block in part.own_blocks:
            if block.kind == "Table":
                yield from _of_table(part, block)


def read_issue_counts(parts: Iterable[Part], issues: Iterable[Issue]) -> dict[str, int]:
    """How many issues of each severity the review states; where it states none, how many it lists."""
    parts = list(parts)
    counts = {_severity(each): 0 for part in _groups(parts) for each in _severities(part)}
    for issue in issues:
        counts[issue.severity] = counts.get(issue.severity, 0) + 1
    for part in _groups(parts, summaries=True):
        stated = ((entry.key, _COUNT.match(entry.plain)) for entry in part.entries)
        counts.update({key: int(match[0]) for key, match in stated if match})
    return counts


def _groups(parts: Iterable[Part], *, summaries: bool = False) -> Iterator[Part]:
    """The outermost parts on issues, or those that sum them up."""
    for part in parts:
        words = part.name.split()
        about = bool(_ISSUES.intersection(words)) and part.heading is not None and part.heading.level > 1
        if about and ("summary" in words) is summaries:
            yield part
        elif not about:
            yield from _groups(part.parts, summaries=summaries)


def _severities(part: Part) -> list[Part]:
    """The parts of a group that hold the issues of one severity: those within it, or it itself."""
    if part.name.split()[0] in _SEVERITIES:
        return [part]
    named = [each for each in part.parts if (each.name.split() or [""])[0] in _SEVERITIES]
    return named or [each for each in part.parts if _ISSUES.intersection(each.name.split())]


def _severity(part: Part) -> str:
    return part.name.partition(" ")[0]


def _of_severity(part: Part) -> Iterator[Issue]:
    headline: Text | None = None
    details: dict[str, str] = {}
    for block in part.blocks:
        if (
            block.kind == "List"
            and not details
            and any(_bold(part, *text_of(item)) for item in block.children)
        ):
            yield from _of_list(part, block)
            continue
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
    return _bold(part, block.start, block.end) if block.kind == "Paragraph" else None


def _bold(part: Part, start: int, end: int) -> Text | None:
    """The bold words that begin a text, unless they are the label of a value or say that there is none."""
    raw = part.source.raw(start, end)
    bold = _BOLD.match(raw)
    if bold is None or _LABEL_END.match(bold["words"][-1:] + raw[bold.end() :]):
        return None
    nothing = bold["words"].strip(" .").lower() in ("none", "n/a")
    return None if nothing else part.source.text(start, start + len(bold[0].encode()))


def _of_list(part: Part, block: Block) -> Iterator[Issue]:
    """Issues as the items of a list, with their details nested in them."""
    for number, item in enumerate(block.children, 1):
        lead = _bold(part, *text_of(item))
        if lead:
            details = {key: value for child in item.children for key, value in _details(part, child)}
            yield from _issue(part, lead, details, number=str(number))


def _of_table(part: Part, block: Block) -> Iterator[Issue]:
    """A table with a row for each issue and a column for its severity."""
    table = table_of(part.source, block)
    titles = table.titles
    titled = next((title for title in titles if _COLUMN.fullmatch(title)), None)
    if titled is None or "severity" not in titles:
        return
    named = next((title for title in titles if _NAME.fullmatch(title)), None)
    for row in table.records:
        text = part.source.text(row[titles[0]].span.start, row[titles[-1]].span.end)
        others = [title for title in titles if title not in (titled, named, "severity")]
        yield Issue(
            raw=text.raw,
            span=text.span,
            severity=plain(row["severity"].raw).lower(),
            id=plain(row[named].raw) if named else "",
            title=plain(row[titled].raw),
            details={title.capitalize(): plain(row[title].raw) for title in others},
        )


def _issue(part: Part, headline: Text, details: dict[str, str], number: str = "") -> Iterator[Issue]:
    match = _ISSUE.fullmatch(plain(headline.raw))
    if match:
        yield Issue(
            raw=headline.raw,
            span=headline.span,
            severity=_severity(part),
            id=match["id"] or number,
            title=match["title"],
            details=details,
        )


def _details(part: Part, block: Block) -> Iterator[tuple[str, str]]:
    """The labelled items of a list, each with all nested in it, or the labelled lines of a paragraph."""
    for item in block.children if block.kind == "List" else ():
        for entry in labelled(part.source, *text_of(item)):
            yield entry.label, plain(part.source.raw(entry.value.span.start, item.end))
    if block.kind == "Paragraph":
        for entry in labelled(part.source, block.start, block.end):
            if not _bold(part, entry.start, block.end):
                yield entry.label, entry.plain
