"""The metadata of a document: its rows, and the fields that are read from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.entries import Entry, entries
from finding_tickets.documents.inline import code_spans, plain
from finding_tickets.documents.phrases import word_in
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Field, Text
from finding_tickets.model.vocabulary import Words, squeeze

E = TypeVar("E", bound=StrEnum)

KEYS: Mapping[str, tuple[str, ...]] = {
    name: tuple(labels.split(", "))
    for name, labels in {
        "ID": "Ticket ID, ID, Review ID, Ticket, Finding ID, Bug ID, Issue ID",
        "Severity": "Severity, Priority",
        "Status": "Status, State",
        "Resolution": "Resolution, Outcome, Disposition",
        "Batch": "Batch",
        "Agent": "Agent, Agents, Reporter, Reported By, Found By, Discovered By, Source Agent",
        "Domain": "Domain, Domains, Component, Components, Area, Subsystem",
        "Assignee": "Assignee, Assigned To, Owner",
        "Created": "Created, Date Created, Date Discovered, Discovered, Opened, Reported, Filed, Date",
        "Updated": "Updated, Last Updated, Last Modified, Modified",
        "Closed": "Closed, Date Closed, Resolved, Date Resolved, Fixed, Date Fixed, Fix Date, Fixed On",
        "Code Repository": "Code Repository",
        "Title": "Title",
        "Category": "Category, Categories",
        "Reviewer": "Reviewer, Reviewed By, Reviewers, Author",
        "Date": "Date, Review Date, Date Reviewed, Reviewed, Reviewed On",
        "Commits": "Commits, Commit, Commit Range, Commits Reviewed, Commit Hash, Commit SHA, SHA, Git Range",
        "Base": "Base, Base Commit, Base SHA",
        "Head": "Head, Head Commit, Head SHA",
        "Plan": "Plan Reference, Plan, Plan Document, Plan File, Implementation Plan, Reference Plan",
        "Specification": "Specification, Spec, Design Document",
    }.items()
}
"""The labels under which a value is looked for, the best first."""

_KEYS = {name: tuple(map(squeeze, labels)) for name, labels in KEYS.items()}
_BETWEEN = re.compile(rb"\s[/&+]\s|\sand\s|[,;]|<br ?/?>|(?:^|[\r\n])[ \t]*-[ \t]")
_BARE = re.compile("|".join(key for keys in _KEYS.values() for key in keys))
_NUMBER = re.compile(r"(?:batch\s*#?|b)?([0-9]{1,9})(?:\b(?![.\w]).*)?", re.IGNORECASE)

Choice = Callable[[str, Words], str | None]


@dataclass(frozen=True)
class Metadata:
    """The rows of the metadata, by the label as it is compared: ``Ticket ID`` is ``ticketid``."""

    source: Source
    entries: Mapping[str, Entry]

    @property
    def rows(self) -> dict[str, Text]:
        """The values as written, by their label."""
        return {entry.label: entry.value for entry in self.entries.values()}

    def get(self, name: str) -> Entry | None:
        """The row of this name, under the first of its labels that has a value."""
        for key in _KEYS.get(name) or (squeeze(name),):
            entry = self.entries.get(key)
            if entry and entry.plain:
                return entry
        return None

    def string(self, name: str) -> Field[str] | None:
        """The value of a row without its markup."""
        entry = self.get(name)
        return field(entry.value, entry.plain) if entry else None

    def number(self, name: str) -> Field[int | None] | None:
        """The value of a row as an integer; None inside where it is not one."""
        entry = self.get(name)
        if entry is None:
            return None
        match = _NUMBER.fullmatch(entry.plain)
        if match is None:
            message = f"{name} is not a number: {entry.plain!r}"
            self.source.report("metadata-number", entry.value.span.start, message)
        value = int(match[1]) if match else None
        return Field(entry.value.raw, entry.value.span, value)

    def word(
        self, name: str, kind: type[E], words: Words, choose: Choice = word_in
    ) -> Field[E | None] | None:
        """The value of a row as a word of a vocabulary; None inside where it is not one."""
        entry = self.get(name)
        if entry is None:
            return None
        word = choose(entry.plain, words)
        if word is None:
            hint = f"one of {', '.join(words)}"
            self.source.report(
                "unknown-word", entry.value.span.start, f"{name} is {entry.plain!r}", hint=hint
            )
        return Field(entry.value.raw, entry.value.span, None if word is None else kind(word))

    def strings(self, name: str) -> tuple[Field[str], ...]:
        """The values of a row that lists several: code spans, or pieces between commas and slashes."""
        entry = self.get(name)
        if entry is None:
            return ()
        texts = [self.source.text(*span) for span in listed(self.source, entry.value)]
        return tuple(field(text, plain(text.raw)) for text in texts if text.raw)


def metadata_entries(source: Source, blocks: Iterable[Block]) -> Iterator[Entry]:
    """The labelled values of a section of metadata, known labels without bold marks included.

    A table with a column for each label and a single row says the same as one with a row for each.
    """
    for block in blocks:
        table = table_of(source, block) if block.kind == "Table" else None
        if table and len(table.body) == 1 and len(table.titles) > 1:
            [record] = table.records
            titles = [title for title in record if _BARE.fullmatch(squeeze(title))]
            if len(titles) == len(record):
                yield from (Entry(title.title(), record[title], record[title].span.start) for title in titles)
                continue
        yield from entries(source, [block], _BARE)


def read_metadata(source: Source, entries: Iterable[Entry]) -> Metadata:
    """Collect the rows; of rows with the same label the first counts, and the others are reported."""
    rows: dict[str, Entry] = {}
    for entry in entries:
        if entry.key in rows:
            message = f"{entry.label} is given twice; the first one counts"
            source.report("metadata-twice", entry.value.span.start, message)
        rows.setdefault(entry.key, entry)
    return Metadata(source, rows)


def field(text: Text, value: str) -> Field[str]:
    """``text`` with the string read from it."""
    return Field(text.raw, text.span, value)


def listed(source: Source, value: Text) -> list[tuple[int, int]]:
    """The pieces of a value that lists several: its code spans, else what stands between separators."""
    start, end = value.span.start, value.span.end
    spans = code_spans(source.data, start, end)
    if spans:
        return spans
    if value.raw.startswith("[") and value.raw.endswith("]"):
        start, end = start + 1, end - 1
    separators = [match.span() for match in _BETWEEN.finditer(source.data[start:end])]
    starts = [start, *(start + stop for _, stop in separators)]
    return list(zip(starts, [*(start + begin for begin, _ in separators), end], strict=True))
