"""The metadata of a document: its rows, and the fields that are read from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from finding_tickets.markdown.entries import Entry
from finding_tickets.markdown.inline import code_spans, plain
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Field, Text
from finding_tickets.model.vocabulary import Words, squeeze, word_for

E = TypeVar("E", bound=StrEnum)

_BETWEEN = re.compile(rb"\s[/&+]\s|\sand\s|[,;]|<br ?/?>")


@dataclass(frozen=True)
class Metadata:
    """The rows of the metadata, by the label as it is compared: ``Ticket ID`` is ``ticketid``."""

    source: Source
    entries: Mapping[str, Entry]

    @property
    def rows(self) -> dict[str, Text]:
        """The values as written, by their label."""
        return {entry.label: entry.value for entry in self.entries.values()}

    def get(self, *labels: str) -> Entry | None:
        """The row with the first of ``labels`` that has a value."""
        found = (self.entries.get(squeeze(label)) for label in labels)
        return next((entry for entry in found if entry and entry.plain), None)

    def string(self, *labels: str) -> Field[str] | None:
        """The value of a row without its markup."""
        entry = self.get(*labels)
        return field(entry.value, entry.plain) if entry else None

    def number(self, label: str) -> Field[int | None] | None:
        """The value of a row as an integer; None inside where it is not one."""
        entry = self.get(label)
        if entry is None:
            return None
        value = int(entry.plain) if re.fullmatch(r"[0-9]{1,9}", entry.plain) else None
        if value is None:
            self.source.report(
                "metadata-number", entry.value.span.start, f"{label} is not a number: {entry.plain!r}"
            )
        return Field[int | None](raw=entry.value.raw, span=entry.value.span, value=value)

    def word(self, label: str, into: type[Field[E | None]], words: Words) -> Field[E | None] | None:
        """The value of a row as a word of a vocabulary; None inside where it is not one."""
        entry = self.get(label)
        if entry is None:
            return None
        word = word_for(entry.plain, words)
        if word is None:
            hint = f"one of {', '.join(words)}"
            self.source.report(
                "unknown-word", entry.value.span.start, f"{label} is {entry.plain!r}", hint=hint
            )
        return into.model_validate({"raw": entry.value.raw, "span": entry.value.span, "value": word})

    def strings(self, label: str) -> tuple[Field[str], ...]:
        """The values of a row that lists several: code spans, or pieces between commas and slashes."""
        entry = self.get(label)
        if entry is None:
            return ()
        texts = [self.source.text(*span) for span in listed(self.source, entry.value)]
        return tuple(field(text, plain(text.raw)) for text in texts if text.raw)


def read_metadata(source: Source, entries: Iterable[Entry]) -> Metadata:
    """Collect the rows; of rows with the same label the first counts, and the others are reported."""
    rows: dict[str, Entry] = {}
    for entry in entries:
        if entry.key in rows:
            source.report(
                "metadata-twice",
                entry.value.span.start,
                f"{entry.label} is given twice; the first one counts",
            )
        rows.setdefault(entry.key, entry)
    return Metadata(source, rows)


def field(text: Text, value: str) -> Field[str]:
    """``text`` with the string read from it."""
    return Field[str](raw=text.raw, span=text.span, value=value)


def listed(source: Source, value: Text) -> list[tuple[int, int]]:
    """The pieces of a value that lists several: its code spans, else what stands between separators."""
    start, end = value.span.start, value.span.end
    spans = code_spans(source.data, start, end)
    if spans:
        return spans
    separators = [match.span() for match in _BETWEEN.finditer(source.data[start:end])]
    starts = [start, *(start + stop for _, stop in separators)]
    return list(zip(starts, [*(start + begin for begin, _ in separators), end], strict=True))
