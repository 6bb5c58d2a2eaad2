"""Which lines and which symbols belong to which of several files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from finding_tickets.documents.entries import Entry
from finding_tickets.documents.inline import code_spans
from finding_tickets.documents.places import EXTENSION, Lines, line_ranges, names
from finding_tickets.documents.source import Source

_FILE_BEFORE = re.compile(rf"(?<![\w./\\-])([\w./\\-]+\.{EXTENSION})\b\s*:?")
_FILE_AFTER = re.compile(rf"\(([\w./\\-]{{1,300}}\.{EXTENSION})\)")
_NOWHERE = re.compile(
    r"\W*(?:n/?a\b|none\b|multiple\b|various\b|several\b|many\b|all\b|tb[da]\b|unknown\b|not applicable\b|$)",
    re.IGNORECASE,
)
_NO_LINES = re.compile(
    r"\W*(?:(?:the )?(?:entire|whole|full)\b|throughout\b|missing\b|new\b|module\b|file\b|class\b|see\b)",
    re.IGNORECASE,
)


def is_nowhere(entry: Entry | None) -> bool:
    """Whether a row is missing or says only that there is nothing to say: ``N/A``, ``Multiple``."""
    return entry is None or ("`" not in entry.value.raw and _NOWHERE.match(entry.plain) is not None)


def pair_symbols(source: Source, count: int, symbols: Entry | None) -> list[tuple[str, str] | None]:
    """For each file its symbols, without markup and as written.

    As many symbols as files are taken in pairs; otherwise each file has them all.
    """
    if symbols is None or is_nowhere(symbols):
        return [None] * count
    spans = code_spans(source.data, symbols.value.span.start, symbols.value.span.end)
    if count > 1 and len(spans) == count:
        pieces = [source.raw(*span) for span in spans]
        return [(piece, f"`{piece}`") for piece in pieces]
    return [(symbols.plain, symbols.value.raw)] * count


def pair_lines(source: Source, files: Sequence[str], lines: Entry | None) -> list[Lines]:
    """The lines of each file: by the file named before them, in order, or all of them for a single file."""
    if lines is None:
        return [()] * len(files)
    named = _named(lines.plain)
    if named:
        return _by_name(source, files, lines, named)
    ranges = line_ranges(lines.plain)
    if not ranges and (_NOWHERE.match(lines.plain) or _NO_LINES.match(lines.plain)):
        return [()] * len(files)
    if ranges and len(files) == 1:
        return [ranges]
    if ranges and len(files) == len(ranges):
        return [(each,) for each in ranges]
    message, hint = f"no line numbers in {lines.plain!r}", None
    if ranges:
        message = f"cannot tell which of the {len(files)} files each of the {len(ranges)} line ranges is in"
        hint = "write file.py:10-20 for each"
    source.report("location-lines", lines.value.span.start, message, hint=hint)
    return [()] * len(files)


def _named(text: str) -> list[tuple[str, str]]:
    """File and lines, where each file is named: ``a.py: 10-20, b.py: 5`` or ``10-20 (a.py), 5 (b.py)``."""
    after, before = _FILE_AFTER.split(text), _FILE_BEFORE.split(text)
    if len(after) > 1:
        return list(zip(after[1::2], after[0::2], strict=False))
    return list(zip(before[1::2], before[2::2], strict=True))


def _by_name(
    source: Source, files: Sequence[str], lines: Entry, named: Sequence[tuple[str, str]]
) -> list[Lines]:
    found: dict[str, Lines] = {}
    for name, text in named:
        path = next((path for path in files if names(name, path)), None)
        if path is None:
            message = f"{name} is none of the files of this location"
            source.report("location-lines", lines.value.span.start, message)
        else:
            found[path] = found.get(path, ()) + line_ranges(text)
    return [found.get(path, ()) for path in files]
