"""Fenced code: its language, its content, and the place that its first comment names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.markdown.blocks import walk
from finding_tickets.markdown.parts import Part
from finding_tickets.model.ticket import CodeBlock

_PLACE = re.compile(r"\s*(?:#|//|--)\s*(?P<place>[\w./\\-]+\.\w+(?::[\d,\s-]*\d)?)")


def read_code(parts: Iterable[Part]) -> Iterator[CodeBlock]:
    """Every code block of ``parts``."""
    for part in parts:
        for block in walk(part.blocks):
            if block.kind == "CodeBlock":
                text, place = part.source.text(block.start, block.end), _PLACE.match(block.code)
                yield CodeBlock(
                    raw=text.raw,
                    span=text.span,
                    language=(block.info.split() or [""])[0],
                    code=block.code,
                    location=place["place"] if place else None,
                    places=(),
                )
