"""The location section: files, lines and symbols, as labelled rows, as a table of places, or in a list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from finding_tickets.markdown.entries import Entry, entries
from finding_tickets.markdown.inline import code_spans, plain
from finding_tickets.markdown.metadata import listed
from finding_tickets.markdown.pairing import is_nowhere, pair_lines, pair_symbols
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.places import line_ranges, location_of, path_and_lines
from finding_tickets.markdown.tables import columns, records
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Location
from finding_tickets.model.vocabulary import squeeze

T = TypeVar("T")

_FILES = frozenset(["files", "file", "path", "paths"])
_LINES = frozenset(["lines", "line", "linenumbers", "linenumber"])
_SYMBOLS = frozenset(
    ["functionclass", "function", "functions", "class", "method", "module", "symbol", "symbols"]
)


def read_locations(part: Part) -> tuple[Location, ...]:
    """The places that a location section names."""
    return tuple(_of_columns(part)) or tuple(_of_rows(part)) or read_mentioned(part)


def read_mentioned(part: Part) -> tuple[Location, ...]:
    """The paths in code spans of a section without labels, such as a list of changed files."""
    body = part.body
    spans = code_spans(part.source.data, body.span.start, body.span.end)
    found = (location_of(part.source.text(*span)) for span in spans)
    return tuple(location for location in found if location)


def _of_columns(part: Part) -> Iterator[Location]:
    """A table with a column of files, perhaps of lines and symbols: a place in each row."""
    for table in (block for block in part.own_blocks if block.kind == "Table"):
        rows = list(records(part.source, table))
        labels = {squeeze(next(iter(row.values())).raw) for row in rows}
        in_columns = squeeze(columns(part.source, table)[0]) in _FILES
        if in_columns and labels.isdisjoint(_LINES | _SYMBOLS):
            for row in rows:
                yield _of_record({squeeze(title): cell for title, cell in row.items()})


def _of_record(row: Mapping[str, Text]) -> Location:
    file, lines, symbol = (_pick(row, keys) for keys in (_FILES, _LINES, _SYMBOLS))
    text = next(iter(row.values()))
    path, own = path_and_lines(plain(file.raw)) if file else ("", ())
    return Location(
        raw=text.raw,
        span=text.span,
        file=path or None,
        lines=own or line_ranges(plain(lines.raw) if lines else ""),
        symbol=plain(symbol.raw) if symbol and symbol.raw else None,
    )


def _of_rows(part: Part) -> Iterator[Location]:
    """Labelled rows: the files, their lines and their symbols."""
    rows = {entry.key: entry for entry in entries(part.source, part.own_blocks)}
    files, lines, symbols = (_pick(rows, keys) for keys in (_FILES, _LINES, _SYMBOLS))
    if is_nowhere(files):
        if not is_nowhere(symbols):
            yield _without_file(part, lines, symbols)
        return
    texts = _texts(part, files)
    stated = [path_and_lines(plain(text.raw)) for text in texts]
    of_lines = pair_lines(part.source, [path for path, _ in stated], lines)
    of_symbols = pair_symbols(part.source, len(texts), symbols)
    for text, (path, own), more, symbol in zip(texts, stated, of_lines, of_symbols, strict=True):
        yield Location(raw=text.raw, span=text.span, file=path, lines=own or more, symbol=symbol)


def _texts(part: Part, files: Entry | None) -> list[Text]:
    spans = listed(part.source, files.value) if files else []
    return [text for text in (part.source.text(*span) for span in spans) if text.raw]


def _without_file(part: Part, lines: Entry | None, symbols: Entry | None) -> Location:
    body = part.body
    return Location(
        raw=body.raw,
        span=body.span,
        file=None,
        lines=line_ranges(lines.plain) if lines else (),
        symbol=symbols.plain if symbols else None,
    )


def _pick(rows: Mapping[str, T], keys: Collection[str]) -> T | None:
    return next((value for key, value in rows.items() if key in keys), None)
