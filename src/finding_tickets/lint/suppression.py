"""Comments by which a ticket has lint ignore a rule in it, with a reason."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from finding_tickets.documents.blocks import Block, parse, walk
from finding_tickets.documents.inline import code_spans
from finding_tickets.documents.source import Source

_MARK = b"lint-ignore"
_COMMENT = re.compile(rb"<!--[ \t\r\n]*lint-ignore\b(?P<text>(?:(?!<!--|-->)[\s\S])*)-->")
_TEXT = re.compile(r"\s+(?P<rules>[\w-]+(?:\s*,\s*[\w-]+)*)\s*(?::\s*(?P<reason>\S.*))?", re.DOTALL)


@dataclass(frozen=True)
class Suppression:
    """A comment at ``[start, end)``: the rules it names, and why they are to be ignored, if it says so."""

    start: int
    end: int
    rules: tuple[str, ...]
    reason: str


def suppressions(source: Source) -> tuple[Suppression, ...]:
    """The comments ``<!-- lint-ignore RULE, RULE: reason -->`` of a document, those in code left out."""
    if _MARK not in source.data:
        return ()
    code = sorted(span for block in walk(parse(source.data)) for span in _code(source, block))
    return tuple(
        _suppression(match) for match in _COMMENT.finditer(source.data) if not is_within(match.start(), code)
    )


def whole_line(source: Source, found: Suppression) -> tuple[int, int]:
    """The bytes to remove with a comment: its lines and an empty one below, where it stands alone on them."""
    start = source.line_starts[source.line(found.start) - 1]
    rest = re.compile(rb"[ \t]*(?:\r\n|\r|\n|\Z)").match(source.data, found.end)
    if source.data[start : found.start].strip(b" \t\xef\xbb\xbf") or rest is None:
        return found.start, found.end
    below = re.compile(rb"[ \t]*(?:\r\n|\r|\n)").match(source.data, rest.end())
    return start, below.end() if below else rest.end()


def _suppression(match: re.Match[bytes]) -> Suppression:
    text = _TEXT.fullmatch(match["text"].decode(errors="replace").rstrip())
    names = re.split(r"\s*,\s*", text["rules"]) if text else []
    return Suppression(*match.span(), tuple(names), (text["reason"] or "") if text else "")


def _code(source: Source, block: Block) -> Iterator[tuple[int, int]]:
    """Where a block holds code: all of it, or its code spans."""
    if block.kind == "CodeBlock":
        yield block.start, block.end
    elif block.first < block.last:
        yield from code_spans(source.data, block.first, block.last)


def is_within(offset: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether one of ``spans``, which are sorted and lie apart, holds the offset."""
    at = bisect_right(spans, offset, key=itemgetter(0)) - 1
    return at >= 0 and offset < spans[at][1]
