"""Values that stand anywhere in a review: its verdict, its scores, its claims of speed, its artifacts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.markdown.blocks import Block, walk
from finding_tickets.markdown.entries import entries, text_of
from finding_tickets.markdown.inline import code_spans, plain
from finding_tickets.markdown.metadata import field
from finding_tickets.markdown.parts import Part, nested
from finding_tickets.model.record import Field
from finding_tickets.model.review import Artifact, PerformanceClaim, Score

_VERDICTS = ("assessment", "verdict", "recommendation", "decision")
_OVERALL = ("overall", "overallscore", "qualityscore", "score", "total")
_SCORE = re.compile(r"(?P<value>\d+(?:\.\d+)?)\s*/\s*(?P<out_of>\d+(?:\.\d+)?)\s*(?P<remark>.*)", re.DOTALL)
_TOTAL = re.compile(r"^[^\w\r\n]*(total\b.*)$", re.IGNORECASE | re.MULTILINE)
_BEFORE_WORDS = re.compile(r"^[^\w]+")


def read_verdict(parts: Iterable[Part]) -> Field[str] | None:
    """The verdict, without the sign in front of it."""
    for part in parts:
        for entry in entries(part.source, part.blocks):
            if entry.key in _VERDICTS and entry.plain:
                return field(entry.value, _BEFORE_WORDS.sub("", entry.plain))
    return None


def read_scores(parts: Iterable[Part]) -> Iterator[Score]:
    """Every labelled ``9.5/10``."""
    for part in parts:
        for entry in entries(part.source, part.blocks):
            match = _SCORE.fullmatch(entry.plain)
            if match and float(match["out_of"]) > 0:
                yield Score(
                    raw=entry.value.raw,
                    span=entry.value.span,
                    name="overall" if entry.key in _OVERALL else entry.label,
                    value=float(match["value"]),
                    out_of=float(match["out_of"]),
                    remark=match["remark"].strip("() "),
                )


def read_performance(parts: Iterable[Part]) -> Iterator[PerformanceClaim]:
    """What the sections on performance state: labelled values, and the totals in their code."""
    for part in (each for each in parts if "performance" in each.name):
        found = [
            (entry.value, f"{entry.label}: {entry.plain}") for entry in entries(part.source, part.blocks)
        ]
        for block in (each for each in walk(part.blocks) if each.kind == "CodeBlock"):
            content = part.source.raw(block.first, block.last)
            for match in _TOTAL.finditer(content):
                start = block.first + len(content[: match.start(1)].encode())
                found.append((part.source.text(start, start + len(match[1].encode())), match[1].strip()))
        for text, words in sorted(found, key=lambda pair: pair[0].span.start):
            if text.raw:
                yield PerformanceClaim(raw=text.raw, span=text.span, text=words)


def read_artifacts(parts: Iterable[Part]) -> Iterator[Artifact]:
    """What the change made or touched, under the heading of its group."""
    for part in nested(parts):
        if part.name == "artifacts":
            for group in (each for each in part.parts if each.heading):
                for item in (each for each in walk(group.blocks) if each.kind == "Item"):
                    yield _artifact(group, item)


def _artifact(group: Part, item: Block) -> Artifact:
    """The first code span names the artifact; the rest is a remark."""
    text = group.source.text(*text_of(item))
    spans = code_spans(group.source.data, text.span.start, text.span.end)
    words = plain(text.raw)
    name = plain(group.source.raw(*spans[0])) if spans else words.partition(" (")[0]
    remark = words.removeprefix(name).strip(" :\u2013\u2014-")
    if remark.startswith("(") and remark.endswith(")"):
        remark = remark[1:-1]
    return Artifact(raw=text.raw, span=text.span, group=group.title, name=name, remark=remark)
