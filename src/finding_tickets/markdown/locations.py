"""The location section: files, lines and symbols, however several of them are paired."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import PurePosixPath

from finding_tickets.markdown.entries import Entry, entries
from finding_tickets.markdown.inline import code_spans, plain
from finding_tickets.markdown.metadata import listed
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import LineRange, Location

Lines = tuple[LineRange, ...]

_RANGE = re.compile(r"(?<![\w.])L?(\d{1,9})(?:\s*[-\u2013]\s*L?(\d{1,9}))?(?![\w.]*\w)")
_FILE_IN_LINES = re.compile(r"([\w./\\-]+\.\w+)`?\s*:")
_PATH_AND_LINES = re.compile(r"(?P<path>.+?\.\w+)(?::(?P<lines>[L\d][\dL\s,:\u2013-]*))?")
_NOWHERE = re.compile(r"n/?a\b|none\b|multiple\b|various\b|several\b|all\b|-+$|\u2014$|$", re.IGNORECASE)


def read_locations(part: Part) -> tuple[Location, ...]:
    """The places that a location section names."""
    rows = {entry.key: entry for entry in entries(part.source, part.own_blocks)}
    files, lines, symbols = (_first(rows, keys) for keys in (_FILE_KEYS, _LINE_KEYS, _SYMBOL_KEYS))
    if files is None and symbols is None:
        return _mentioned(part)
    texts = _file_texts(part.source, files)
    if not texts:
        return (_without_file(part, lines, symbols),)
    stated = [_split(plain(text.raw)) for text in texts]
    of_lines = _lines_of_files(part.source, [path for path, _ in stated], lines)
    of_symbols = _symbols_of_files(part.source, len(texts), symbols)
    return tuple(
        Location(raw=text.raw, span=text.span, file=path, lines=own or more, symbol=symbol)
        for text, (path, own), more, symbol in zip(texts, stated, of_lines, of_symbols, strict=True)
    )


def location_of(text: Text) -> Location | None:
    """The place that ``path.py:10-20`` names, or None."""
    path, lines = _split(plain(text.raw))
    looks_like_path = "/" in path or re.search(r"\.\w+$", path)
    return (
        Location(raw=text.raw, span=text.span, file=path, lines=lines, symbol=None)
        if looks_like_path
        else None
    )


def line_ranges(text: str) -> Lines:
    """The line numbers and ranges in ``text``: ``177-178, 189`` gives two."""
    return tuple(
        LineRange(first=int(match[1]), last=max(int(match[1]), int(match[2] or match[1])))
        for match in _RANGE.finditer(text)
    )


_FILE_KEYS = ("files", "file", "path", "paths")
_LINE_KEYS = ("lines", "line", "linenumbers", "linenumber")
_SYMBOL_KEYS = ("functionclass", "function", "class", "symbol", "symbols", "method", "functions", "module")


def _first(rows: dict[str, Entry], keys: Sequence[str]) -> Entry | None:
    return next((rows[key] for key in keys if key in rows), None)


def _split(text: str) -> tuple[str, Lines]:
    """A path and the lines that may follow it after a colon."""
    match = _PATH_AND_LINES.fullmatch(text)
    return (match["path"], line_ranges(match["lines"] or "")) if match else (text, ())


def _file_texts(source: Source, files: Entry | None) -> list[Text]:
    if files is None or _NOWHERE.match(files.plain):
        return []
    return [text for text in (source.text(*span) for span in listed(source, files.value)) if text.raw]


def _without_file(part: Part, lines: Entry | None, symbols: Entry | None) -> Location:
    body = part.body
    return Location(
        raw=body.raw,
        span=body.span,
        file=None,
        lines=line_ranges(lines.plain) if lines else (),
        symbol=_symbol(symbols),
    )


def _symbol(symbols: Entry | None) -> str | None:
    return None if symbols is None or _NOWHERE.match(symbols.plain) else symbols.plain


def _symbols_of_files(source: Source, count: int, symbols: Entry | None) -> list[str | None]:
    """As many symbols as files are taken in pairs; otherwise each file has them all."""
    whole = _symbol(symbols)
    if symbols is None or whole is None:
        return [None] * count
    spans = code_spans(source.data, symbols.value.span.start, symbols.value.span.end)
    if count > 1 and len(spans) == count:
        return [source.raw(*span) for span in spans]
    return [whole] * count


def _lines_of_files(source: Source, files: list[str], lines: Entry | None) -> list[Lines]:
    """The lines of each file: by the file named before them, in order, or all of them for a single file."""
    if lines is None or _NOWHERE.match(lines.plain):
        return [()] * len(files)
    if _FILE_IN_LINES.search(lines.plain):
        return _lines_by_name(source, files, lines)
    ranges = line_ranges(lines.plain)
    if not ranges:
        source.report("location-lines", lines.line, f"no line numbers in {lines.plain!r}")
        return [()] * len(files)
    if len(files) == 1:
        return [ranges]
    if len(files) == len(ranges):
        return [(each,) for each in ranges]
    message = f"cannot tell which of the {len(files)} files each of the {len(ranges)} line ranges is in"
    source.report("location-lines", lines.line, message, hint="write file.py:10-20 for each")
    return [()] * len(files)


def _lines_by_name(source: Source, files: list[str], lines: Entry) -> list[Lines]:
    pieces = _FILE_IN_LINES.split(lines.plain)
    found: dict[str, Lines] = {}
    for name, text in zip_longest(pieces[1::2], pieces[2::2], fillvalue=""):
        path = next((path for path in files if _names(name, path)), None)
        if path is None:
            source.report("location-lines", lines.line, f"{name} is none of the files of this location")
        else:
            found[path] = found.get(path, ()) + line_ranges(text)
    return [found.get(path, ()) for path in files]


def _names(name: str, path: str) -> bool:
    """Whether ``name`` is the end of ``path``: ``ppo.py`` names ``src/agent/ppo.py``."""
    parts = PurePosixPath(name).parts
    return PurePosixPath(path).parts[-len(parts) :] == parts


def _mentioned(part: Part) -> tuple[Location, ...]:
    """The paths in code spans of a section without labels, such as a list of changed files."""
    body = part.body
    spans = code_spans(part.source.data, body.span.start, body.span.end)
    found = (location_of(part.source.text(*span)) for span in spans)
    return tuple(location for location in found if location)
