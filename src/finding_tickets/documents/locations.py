"""The location section: files, lines and symbols, as labelled rows, as a table of places, or in a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from finding_tickets.documents.entries import Entry, entries
from finding_tickets.documents.inline import code_spans, plain
from finding_tickets.documents.metadata import listed
from finding_tickets.documents.pairing import is_nowhere, pair_lines, pair_symbols
from finding_tickets.documents.parts import Part
from finding_tickets.documents.places import (
    Lines,
    is_path,
    line_ranges,
    location_of,
    path_and_lines,
    paths_in_prose,
    symbol_names,
)
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Location
from finding_tickets.model.vocabulary import squeeze

T = TypeVar("T")

_FILES = re.compile(r".*(?:files?|paths?)|location")
_LINES = re.compile(r"lines?(?:numbers?|ranges?|affected)?")
_SYMBOLS = re.compile(r"(?:functions?|class(?:es)?|methods?|modules?|symbols?)+")
_BARE = re.compile(rf"(?:{_FILES.pattern})|(?:{_LINES.pattern})|(?:{_SYMBOLS.pattern})")
_MORE_LINES = re.compile(r"[\s,]*[\dL][\dL\s,\u2013-]*")
_LINES_BEHIND = re.compile(r"[\s(,]*(?:lines?\b|L(?=\d)|:(?=\s*\d))[^`]*", re.IGNORECASE)


def read_locations(part: Part) -> tuple[Location, ...]:
    """The places that a location section names."""
    return tuple(_of_columns(part)) or tuple(_of_rows(part)) or read_mentioned(part)


def read_mentioned(part: Part) -> tuple[Location, ...]:
    """The paths in code spans of a section without labels, such as a list of changed files.

    Where no code span is a path, those that stand in the text.
    """
    source, body = part.source, part.body
    spans = code_spans(source.data, body.span.start, body.span.end)
    found = tuple(location for location in (location_of(source.text(*span)) for span in spans) if location)
    if found:
        return found
    prose = (source.text(*_bytes(body, *span)) for span in paths_in_prose(body.raw))
    return tuple(location for location in map(location_of, prose) if location)


def stated_locations(source: Source, stated: Iterable[Entry]) -> Iterator[Location]:
    """The places in labelled values; a further row of files begins further places."""
    group: dict[str, Entry] = {}
    for entry in stated:
        if _FILES.fullmatch(entry.key) and _pick(group, _FILES):
            yield from _of_group(source, group)
            group = {}
        group.setdefault(entry.key, entry)
    yield from _of_group(source, group)


def _bytes(text: Text, first: int, last: int) -> tuple[int, int]:
    """Offsets in the file of two offsets in a text."""
    start = text.span.start + len(text.raw[:first].encode())
    return start, start + len(text.raw[first:last].encode())


def _of_columns(part: Part) -> Iterator[Location]:
    """A table with a column of files, perhaps of lines and symbols: a place in each row."""
    for block in (each for each in part.blocks if each.kind == "Table"):
        table = table_of(part.source, block)
        if not any(_FILES.fullmatch(squeeze(title)) for title in table.titles):
            continue
        labels = [squeeze(next(iter(row.values())).raw) for row in table.records]
        if not any(_LINES.fullmatch(each) or _SYMBOLS.fullmatch(each) for each in labels):
            for row in table.records:
                yield _of_record({squeeze(title): cell for title, cell in row.items()})


def _of_record(row: Mapping[str, Text]) -> Location:
    file, lines, symbol = (_pick(row, keys) for keys in (_FILES, _LINES, _SYMBOLS))
    text = file or next(iter(row.values()))
    path, own = path_and_lines(plain(file.raw)) if file else ("", ())
    return Location(
        raw=text.raw,
        span=text.span,
        file=path or None,
        lines=own or line_ranges(plain(lines.raw) if lines else ""),
        symbol=plain(symbol.raw) if symbol and symbol.raw else None,
        symbols=symbol_names(symbol.raw) if symbol else (),
    )


def _of_rows(part: Part) -> Iterator[Location]:
    """Labelled rows: the files, their lines and their symbols."""
    yield from stated_locations(part.source, entries(part.source, part.blocks, _BARE))


def _of_group(source: Source, rows: Mapping[str, Entry]) -> Iterator[Location]:
    files, lines, symbols = (_pick(rows, keys) for keys in (_FILES, _LINES, _SYMBOLS))
    if files is None or is_nowhere(files):
        if symbols and not is_nowhere(symbols):
            yield _without_file(lines, symbols)
        return
    texts = list(_files(source, files.value))
    of_lines = pair_lines(source, [path for _, path, _ in texts], lines)
    of_symbols = pair_symbols(source, len(texts), symbols)
    for (text, path, own), more, symbol in zip(texts, of_lines, of_symbols, strict=True):
        yield Location(
            raw=text.raw,
            span=text.span,
            file=path,
            lines=own or more,
            symbol=symbol[0] if symbol else None,
            symbols=symbol_names(symbol[1]) if symbol else (),
        )


def _files(source: Source, value: Text) -> Iterator[tuple[Text, str, Lines]]:
    """Each file of a list with its path and its own lines; where some look like paths, only those do."""
    pieces = [span for span in listed(source, value) if source.data[slice(*span)].strip()]
    paths = [span for span in pieces if is_path(plain(source.raw(*span)))] or pieces
    for (start, end), (following, _) in pairwise([*paths, (value.span.end, value.span.end)]):
        text = source.text(start, end)
        path, lines = path_and_lines(plain(text.raw))
        behind = source.raw(end, max(end, following))
        between = behind.strip("`")
        if not lines and _LINES_BEHIND.fullmatch(between):
            lines = line_ranges(between.replace("(", " ").replace(")", " "))
        elif lines and _MORE_LINES.fullmatch(between):
            lines += line_ranges(between)
        yield text, path, lines


def _without_file(lines: Entry | None, symbols: Entry) -> Location:
    return Location(
        raw=symbols.value.raw,
        span=symbols.value.span,
        file=None,
        lines=line_ranges(lines.plain) if lines else (),
        symbol=symbols.plain,
        symbols=symbol_names(symbols.value.raw),
    )


def _pick(rows: Mapping[str, T], keys: re.Pattern[str]) -> T | None:
    return next((value for key, value in rows.items() if keys.fullmatch(key)), None)
