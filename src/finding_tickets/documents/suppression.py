"""Comments by which a document has lint ignore a rule: ``<!-- lint-ignore RULE, RULE: reason -->``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from finding_tickets.documents.source import code_spans, parse, walk

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


def suppressions(data: bytes) -> tuple[Suppression, ...]:
    """The comments ``<!-- lint-ignore RULE, RULE: reason -->`` of a document, those in code left out."""
    if _MARK not in data:
        return ()
    code: list[tuple[int, int]] = []
    for block in walk(parse(data)):
        if block.kind == "CodeBlock":
            code.append((block.start, block.end))
        elif block.first < block.last:
            code += code_spans(data, block.first, block.last)
    code.sort()
    found = []
    for match in _COMMENT.finditer(data):
        if not is_within(match.start(), code):
            text = _TEXT.fullmatch(match["text"].decode(errors="replace").rstrip())
            names = re.split(r"\s*,\s*", text["rules"]) if text else []
            found.append(Suppression(*match.span(), tuple(names), (text["reason"] or "") if text else ""))
    return tuple(found)


def ignored_rules(data: bytes) -> tuple[str, ...]:
    """The rules that the comments of a document name with a reason: without one, others cannot judge it."""
    names = (name for each in suppressions(data) if each.reason for name in each.rules)
    return tuple(dict.fromkeys(names))


def is_within(offset: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether one of ``spans``, which are sorted and lie apart, holds the offset."""
    # A hostile file may have a hundred thousand of both.
    at = bisect_right(spans, offset, key=itemgetter(0)) - 1
    return at >= 0 and offset < spans[at][1]
