"""Labelled values, however they are written, and the fields that are read from those of the metadata.

A value is the cell of a table row, follows a ``**Label:**`` or a label in a list, or belongs to a key of the
front matter, of which only the upper level is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from finding_tickets.documents.blocks import Block, table_of
from finding_tickets.documents.source import Excerpt, Source, Values, plain
from finding_tickets.model.vocabulary import Words, squeeze, word_for

# A label stands at the beginning of a line, or behind a bar in a line of several; bold marks may close
# before the colon, behind it, or behind the value.
_LABEL = re.compile(
    rb"(?m)(?:(?:^|(?<=\r))[ \t]*(?:>[ \t]*)*|(?:\||\xc2\xb7|\xe2\x80\xa2)[ \t]+)"
    rb"(?P<mark>\*\*|__)(?P<label>[^*\r\n]+?)"
    rb"(?::(?P=mark)|(?P=mark)[ \t]*:|:[ \t]+(?P<value>[^*\r\n]+?)(?P=mark)(?=[ \t]*(?:$|\r|\|)))"
)
_BARE_LABEL = re.compile(
    rb"(?m)(?:^|(?<=\r))[ \t]*(?P<label>[A-Za-z][\w()/ -]{0,40}?)[ \t]*:(?=\s)(?P<value>)"
)
_LINE = re.compile(rb"[^\r\n]+")
_BARS = (b"|", b"\xc2\xb7", b"\xe2\x80\xa2")
_SEPARATOR = re.compile(rb"[ \t]+(?:\||\xc2\xb7|\xe2\x80\xa2)\s*\Z")
_FIELD_AND_VALUE = 2
_COLUMN_TITLES = frozenset(["field", "key", "property", "attribute", "item", "name", "metadata"])
_KEY = re.compile(rb"(?<![^\r\n])(?P<quote>[\"']?)(?P<key>\w[^\r\n:]*?)(?P=quote)[ \t]*:(?=[ \t\r\n]|\Z)")
_COMMENT = re.compile(rb"(?:^|[ \t])#[^\r\n]*\Z")
_LINE_END = re.compile(rb"[\r\n]")

LABELS: Mapping[str, tuple[str, ...]] = {
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
"""The labels under which a value of the metadata is looked for, the best first."""

_KEYS = {name: tuple(map(squeeze, labels)) for name, labels in LABELS.items()}
_BARE = re.compile("|".join(key for keys in _KEYS.values() for key in keys))
_BETWEEN = re.compile(rb"\s[/&+]\s|\sand\s|[,;]|<br ?/?>|(?:^|[\r\n])[ \t]*-[ \t]")
_NUMBER = re.compile(r"(?:batch\s*#?|b)?([0-9]{1,9})(?:\b(?![.\w]).*)?", re.IGNORECASE)

_ARROW = re.compile(r"\u2192|\u21d2|[-=]+>")
_STRUCK = re.compile(r"~~.*?~~")
_TOKEN = re.compile(r"[\w'\u2019]+")
_LONGEST_WORD = 4


class LabelledValue:
    """A label, without markup, and the value beside it; ``start`` is where the label does.

    ``key`` is the label as it is compared: that of ``File(s)`` is ``files``.
    """

    __slots__ = ("key", "label", "start", "value")

    def __init__(self, label: str, value: Excerpt, start: int) -> None:
        self.label = label
        self.value = value
        self.start = start
        self.key = squeeze(label)

    @property
    def plain(self) -> str:
        """The value without markup."""
        return self.value.plain

    @property
    def whole(self) -> Excerpt:
        """The value with its label."""
        return self.value.source.text(self.start, self.value.end)


def labelled_values(
    source: Source, blocks: Iterable[Block], bare: re.Pattern[str] | None = None
) -> Iterator[LabelledValue]:
    """Every labelled value among ``blocks``, in the order of the file.

    Labels whose key matches ``bare`` need not be bold.
    """
    for block in blocks:
        if block.kind == "Table":
            table = table_of(source, block)
            titles = table.titles
            # Without a header of its own, the first row of a table of labels is its header for Markdown.
            titled = titles[0] in _COLUMN_TITLES
            valued = len(titles) == _FIELD_AND_VALUE or (titled and titles[1:2] == ["value"])
            for row in table.body if titled else table.rows:
                if row.text:
                    yield from labels_in(source, row.block.start, row.block.end)
                elif valued:
                    label, value, *_ = table.cells(row)
                    yield LabelledValue(label.plain.rstrip(" :"), value, row.block.start)
        elif block.kind == "Paragraph":
            yield from labels_in(source, block.start, block.end, bare)
        elif block.kind == "List" and (bare or _is_marked(source.data, block.start, block.end)):
            for item in block.children:
                yield from labels_in(source, *text_of(item), bare)
        elif block.kind == "BlockQuote":
            yield from labelled_values(source, block.children, bare)
        elif block.kind == "FrontMatter":
            matches = list(_KEY.finditer(source.data, block.start, block.end))
            ends = [*(match.start() for match in matches), block.end][1:]
            for match, until in zip(matches, ends, strict=True):
                piece = source.data[match.end() : until].rstrip()
                if not _LINE_END.search(piece.strip()) and not piece.lstrip().startswith((b'"', b"'")):
                    piece = _COMMENT.sub(b"", piece)
                value = source.text(match.end(), match.end() + len(piece))
                if len(value.raw) > 1 and value.raw[0] == value.raw[-1] and value.raw[0] in "\"'":
                    value = source.text(value.start + 1, value.end - 1)
                yield LabelledValue(match["key"].decode(), value, match.start())


def labels_in(
    source: Source, start: int, end: int, bare: re.Pattern[str] | None = None
) -> Iterator[LabelledValue]:
    """The ``**Label:** value`` pieces of ``[start, end)``; a value reaches to the next label."""
    marked = _is_marked(source.data, start, end)
    if not (bare or marked):
        return
    data = source.data[start:end]
    matches = _matches(_LABEL, data) if marked else []
    if bare:
        named = _matches(_BARE_LABEL, data)
        matches += [match for match in named if bare.fullmatch(squeeze(match["label"].decode()))]
        matches.sort(key=lambda match: match.start())
    ends = [*(match.start() for match in matches), len(data)][1:]
    for match, until in zip(matches, ends, strict=True):
        # With both marks around label and value, the value ends with them: ``**Status: open**``.
        first = match.start("value") if match["value"] else match.end()
        last = match.end("value") if match["value"] else until
        # A value ends before the bar that sets apart the next label.
        if data[first:last].rstrip().endswith(_BARS) and (bar := _SEPARATOR.search(data, first, last)):
            last = bar.start()
        value = source.text(start + first, start + last)
        yield LabelledValue(plain(match["label"].decode()), value, start + match.start())


def _matches(label: re.Pattern[bytes], data: bytes) -> list[re.Match[bytes]]:
    """Where a pattern of labels matches; to try it at every byte would take a tenth of reading a ticket."""
    if any(bar in data for bar in _BARS):
        return list(label.finditer(data))
    lines = (label.match(data, line.start()) for line in _LINE.finditer(data))
    return [match for match in lines if match]


def text_of(item: Block) -> tuple[int, int]:
    """The text of a list item, without the blocks nested in it."""
    if item.first == item.last:
        for child in item.children:
            if child.kind == "Paragraph":
                return child.first, child.last
    return item.first, item.last


def _is_marked(data: bytes, start: int, end: int) -> bool:
    """Whether there are bold marks at all, as there are beside most labels."""
    return data.find(b"**", start, end) >= 0 or data.find(b"__", start, end) >= 0


class Metadata:
    """The rows of the metadata, by the label as it is compared: ``Ticket ID`` is ``ticketid``."""

    def __init__(self, source: Source, blocks: Iterable[Block]) -> None:
        """Collect the rows; of rows with the same label the first counts, and the others are reported."""
        self.source = source
        self.entries: dict[str, LabelledValue] = {}
        for entry in self._rows_of(blocks):
            if entry.key in self.entries:
                message = f"{entry.label} is given twice; the first one counts"
                entry.value.report("metadata-twice", message)
            self.entries.setdefault(entry.key, entry)

    def _rows_of(self, blocks: Iterable[Block]) -> Iterator[LabelledValue]:
        for block in blocks:
            table = table_of(self.source, block) if block.kind == "Table" else None
            titles = table.titles if table and len(table.body) == 1 else []
            if table and len(titles) > 1 and all(_BARE.fullmatch(squeeze(title)) for title in titles):
                # A column for each label and a single row say the same as a row for each label.
                for title, cell in table.records[0].items():
                    yield LabelledValue(title.title(), cell, cell.start)
            else:
                yield from labelled_values(self.source, [block], _BARE)

    @property
    def rows(self) -> Values:
        """The values as written, by their label."""
        return {entry.label: entry.value.record() for entry in self.entries.values()}

    def get(self, name: str) -> LabelledValue | None:
        """The row of this name, under the first of its labels that has a value."""
        for key in _KEYS.get(name) or (squeeze(name),):
            entry = self.entries.get(key)
            if entry and entry.plain:
                return entry
        return None

    def string(self, name: str) -> Values | None:
        """The field of a row: its value without markup."""
        entry = self.get(name)
        return entry.value.record(value=entry.plain) if entry else None

    def number(self, name: str) -> Values | None:
        """The field of a row as an integer; None inside where it is not one."""
        entry = self.get(name)
        if entry is None:
            return None
        match = _NUMBER.fullmatch(entry.plain)
        if match is None:
            entry.value.report("metadata-number", f"{name} is not a number: {entry.plain!r}")
        return entry.value.record(value=int(match[1]) if match else None)

    def word(self, name: str, words: Words, *, mentioned: bool = False) -> Values | None:
        """The field of a row as a word of a vocabulary; None inside where it is not one.

        With ``mentioned`` the only word that stands anywhere in the row counts as well.
        """
        entry = self.get(name)
        if entry is None:
            return None
        word = word_in(entry.plain, words) or (mentioned_word(entry.plain, words) if mentioned else None)
        if word is None:
            hint = f"one of {', '.join(words)}"
            entry.value.report("unknown-word", f"{name} is {entry.plain!r}", hint)
        return entry.value.record(value=word)

    def strings(self, name: str) -> list[Values]:
        """The fields of a row that lists several: code spans, or pieces between commas and slashes."""
        entry = self.get(name)
        texts = listed(entry.value) if entry else []
        return [text.record(value=text.plain) for text in texts if text.raw]


def listed(value: Excerpt) -> list[Excerpt]:
    """The pieces of a value that lists several: its code spans, else what stands between separators."""
    # What stands in backticks is one piece, whatever separators it contains.
    spans = value.code_spans()
    if spans:
        return spans
    start, end = value.start, value.end
    if value.raw.startswith("[") and value.raw.endswith("]"):
        start, end = start + 1, end - 1
    separators = [match.span() for match in _BETWEEN.finditer(value.source.data[start:end])]
    starts = [start, *(start + stop for _, stop in separators)]
    ends = [*(start + begin for begin, _ in separators), end]
    return [value.source.text(*span) for span in zip(starts, ends, strict=True)]


def word_in(phrase: str, words: Words) -> str | None:
    """The word that ``phrase`` is or begins with; where it names a change, by an arrow, of its last state.

    What is struck through does not count: ``closed (2024-12-28)``, ``P1 -> P3``, ``~~open~~ fixed``.
    """
    # People keep the history of a value beside it; the last state is the one that counts.
    last = _ARROW.split(_STRUCK.sub(" ", phrase))[-1]
    if word := word_for(last, words):
        return word
    tokens = _TOKEN.findall(last)[:_LONGEST_WORD]
    beginnings = (" ".join(tokens[:length]) for length in range(len(tokens), 0, -1))
    return next((word for each in beginnings if (word := word_for(each, words))), None)


def mentioned_word(phrase: str, words: Words) -> str | None:
    """The word that ``phrase`` states, or else the only one that it mentions: ``Medium (P2)``."""
    if stated := word_in(phrase, words):
        return stated
    mentioned = {word_for(token, words) for token in _TOKEN.findall(phrase)} - {None}
    return mentioned.pop() if len(mentioned) == 1 else None
