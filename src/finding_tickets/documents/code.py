"""Fenced code: its language, its content, and the places that its comments name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.parts import Part
from finding_tickets.documents.places import EXTENSION, line_ranges, path_and_lines
from finding_tickets.documents.source import Source
from finding_tickets.model.ticket import CodeBlock, Location

_PLACE = re.compile(r"\s*(?:#|//|--)\s*(?P<place>[\w./\\-]+\.\w+(?::[\d,\s-]*\d)?)")
_LINE = re.compile(rb"[^\r\n]+")
_COMMENT = re.compile(rb"[ \t]*(?:#+|//|--|;|<!--)[ \t]*")
_COMMENT_END = b"-->"
_BLANK = b" \t"
_FILE = re.compile(rf"(?<![\w./\\-])(?P<path>[\w./\\-]+\.{EXTENSION})\b(?P<behind>.*)", re.DOTALL)
_COLON_LINES = re.compile(r":\s*~?L?\d[\dL,\s\u2013-]*")
_NAMED_LINES = re.compile(
    r"\b(?:around )?lines?\s+~?\d[\d,\s\u2013-]*(?:\band \d[\d\u2013-]*)?", re.IGNORECASE
)
_LANGUAGE_END = re.compile(r"[\s:{]")
_LONGEST = 300


def read_code(parts: Iterable[Part]) -> Iterator[CodeBlock]:
    """Every code block of ``parts``."""
    for part in parts:
        for block in part.by_kind["CodeBlock"]:
            text, place = part.source.text(block.start, block.end), _PLACE.match(block.code)
            yield CodeBlock(
                raw=text.raw,
                span=text.span,
                language=_LANGUAGE_END.split(block.info, maxsplit=1)[0],
                code=block.code,
                location=place["place"] if place else _of_info(block.info),
                places=tuple(_places(part.source, block)),
            )


def _of_info(info: str) -> str | None:
    """The place beside the language: ``python:src/a.py:10-20`` or ``python title="src/a.py"``."""
    match = _FILE.search(info)
    if match is None:
        return None
    lines = _COLON_LINES.match(match["behind"])
    return match["path"] + (lines[0].strip() if lines else "")


def _places(source: Source, block: Block) -> Iterator[Location]:
    """The places that comments on lines of their own name."""
    # In a list the code is indented, and its first line begins before the block's text does.
    start = source.line_starts[source.line(block.first) - 1]
    for first, last in _comments(source.data, start, block.last):
        words = source.data[first:last].decode(errors="replace")
        file = _FILE.search(words[:_LONGEST])
        beside = _COLON_LINES.match(file["behind"]) if file else None
        named = _NAMED_LINES.search(words[:_LONGEST])
        lines = beside or named
        if lines or (file and file["path"] == words):
            text = source.text(first, last)
            path = path_and_lines(file["path"])[0] if file else None
            found = line_ranges(lines[0].lstrip(":")) if lines else ()
            yield Location(raw=text.raw, span=text.span, file=path, lines=found, symbol=None, symbols=())


def _comments(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the words of the comments stand that have a line of their own."""
    for line in _LINE.finditer(data, start, end):
        mark = _COMMENT.match(data, *line.span())
        if mark:
            words = data[mark.end() : line.end()].rstrip(_BLANK).removesuffix(_COMMENT_END).rstrip(_BLANK)
            yield mark.end(), mark.end() + len(words)
