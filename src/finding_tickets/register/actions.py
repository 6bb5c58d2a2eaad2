"""Edits of a document: set values, tick items, name its duplicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain
from typing import Any, Concatenate, ParamSpec

from finding_tickets.claims.language import suggest
from finding_tickets.documents.edits import (
    add_section,
    name_duplicate,
    row_of,
    set_row,
    spellings,
    tick,
)
from finding_tickets.documents.metadata import ROWS
from finding_tickets.documents.reading import Document, Page, read_page
from finding_tickets.documents.remediation import (
    Entries,
    YamlText,
    add_entries,
    read_sidecar,
    yaml_blocks,
)
from finding_tickets.documents.sections import SectionKind
from finding_tickets.documents.source import Source, Splice, Splices, plain, spliced
from finding_tickets.errors import BadDataError, TicketsError, UsageError
from finding_tickets.ground.files import FileEdit
from finding_tickets.model.ticket import (
    Problem,
    Record,
    Remediation,
    Span,
    Text,
    Ticket,
)
from finding_tickets.model.vocabulary import (
    Level,
    Relationship,
    Status,
    Vocabulary,
    Words,
    squeeze,
    word_for,
)
from finding_tickets.register.disposition import check_transition, status_of
from finding_tickets.register.entries import Entry

# Stands for the titles of the sections, among the fields that a change may affect.
TITLES = "section titles"

_PLACES = frozenset(["span", "line"])


class DocumentEdit:
    """A document under edit, and the ``labels`` of the metadata rows that were set.

    Raises:
        BadDataError: The bytes hold no document.
    """

    def __init__(
        self, data: bytes, path: str, vocabulary: Vocabulary, today: date
    ) -> None:
        self.path, self.vocabulary, self.today = path, vocabulary, today
        self.labels: set[str] = set()
        page, problems = read_page(data, path, vocabulary)
        if page is None:
            reason = problems[0].message if problems else "no document"
            raise BadDataError(f"cannot be edited: {reason}", file=path)
        self.page: Page = page
        self._errors = _errors(problems)

    @property
    def document(self) -> Document:
        """The document as it is read from the current bytes."""
        return self.page.document

    def change(
        self,
        what: str,
        tries: Iterable[Splices],
        expected: Callable[[Document], bool],
        fields: Collection[str],
        labels: Collection[str] = (),
    ) -> None:
        """Write ``what`` in the first way that reads back and changes nothing else.

        ``tries`` are the bytes that each way replaces, the most likely one first; ``expected`` tells whether
        a document reads as it should afterwards. The ``fields`` of the record may differ, and those that are
        read from the rows of the metadata with these ``labels``. ``BadDataError`` where there is no such way.
        """
        why = "it would not read back"
        for splices in tries:
            # Documents have too many forms to predict whether a way works, so the result is read.
            data = spliced(self.page.data, splices)
            page, problems = read_page(data, self.path, self.vocabulary)
            if page is None or not expected(page.document):
                continue
            affected = differences(self.document, page.document, fields, labels)
            # An error that was there before is not for this change to mend.
            errors = _errors(problems) - self._errors
            if affected:
                why = f"{', '.join(affected)} would change as well"
            elif errors:
                why = f"it would be an error ({', '.join(sorted(errors))})"
            else:
                self.page = page
                return
        message = f"{what} cannot be written: {why}; nothing was changed"
        raise BadDataError(message, file=self.path, hint="edit the file by hand")


def _errors(problems: Sequence[Problem]) -> set[str]:
    return {problem.rule for problem in problems if problem.level is Level.ERROR}


def differences(
    before: Document, after: Document, fields: Collection[str], labels: Collection[str]
) -> list[str]:
    """The fields that read differently, besides ``fields`` and what is read from the rows with ``labels``."""
    # A row that was empty, or is empty now, is read from on one side alone.
    expected = {*fields, *_read_from(before, labels), *_read_from(after, labels)}
    old, new = _fields(before, labels), _fields(after, labels)
    return [
        name
        for name in {**old, **new}
        if name not in expected and old.get(name) != new.get(name)
    ]


def touched(document: Document, start: int, end: int) -> Iterator[str]:
    """The fields that are read from text which the bytes ``[start, end]`` are part of."""
    for name, value in document:
        if any(span.start <= end and start <= span.end for span in _spans(value)):
            yield name


def _read_from(document: Document, labels: Collection[str]) -> Iterator[str]:
    for label, value in document.metadata.items():
        if squeeze(label) in labels:
            yield from touched(document, value.span.start, value.span.end)


def _fields(document: Document, labels: Collection[str]) -> dict[str, Any]:
    """Return the value of each field, without its place.

    The metadata is compared row by row, without ``labels``. Of the sections only the titles count: their
    texts are the bytes of the file, which a change keeps or replaces.
    """
    rows = {
        label: text.raw
        for label, text in document.metadata.items()
        if squeeze(label) not in labels
    }
    set_at = [
        text.span.start
        for label, text in document.metadata.items()
        if squeeze(label) in labels
    ]
    # A heading may be the row that is changed: ``## Severity: High``.
    titles = [
        (section.level, section.title)
        for section in document.sections
        if not any(section.heading.start <= at < section.heading.end for at in set_at)
    ]
    fields = {
        name: _meaning(value)
        for name, value in document
        if name not in {"metadata", "sections"}
    }
    return {**fields, "other metadata": rows, TITLES: titles}


def _meaning(value: Any) -> Any:
    """A value without the places that it names."""
    if isinstance(value, Record):
        return {name: _meaning(each) for name, each in value if name not in _PLACES}
    if isinstance(value, Mapping):
        return {key: _meaning(each) for key, each in value.items()}
    return [_meaning(each) for each in value] if isinstance(value, tuple) else value


def _spans(value: Any) -> Iterator[Span]:
    """Yield the spans of a value and of everything in it."""
    if isinstance(value, Text):
        yield value.span
    if isinstance(value, Record):
        value = tuple(each for _, each in value)
    for each in value if isinstance(value, tuple) else ():
        yield from _spans(each)


_IDS = frozenset(["id", "ticketid", "reviewid", "ticket"])
_NUMBER = re.compile(r"[0-9]{1,9}")
_SEPARATORS = re.compile(r"\s*[,;]\s*")
# What people call the domains of a ticket, where it has no row of this name.
_LABELS = frozenset(["label", "labels", "tag", "tags"])
TITLE = "title"

# A value as it is to be written; raises a ``ValueError`` that says what it should be.
Check = Callable[[str, Vocabulary], str]
# A part of an edit: it changes the document, or raises and nothing is written.
Step = Callable[[DocumentEdit], None]
P = ParamSpec("P")


def as_step(change: Callable[Concatenate[DocumentEdit, P], None]) -> Callable[P, Step]:
    """Take the arguments of a change now, and the document when its file is locked."""
    return lambda *values, **named: lambda edit: change(edit, *values, **named)


@dataclass(frozen=True)
class MetadataKey:
    """A row of the metadata."""

    labels: tuple[
        str, ...
    ]  # what the row may be called; a new one is called by the first
    field: str = ""  # of the ticket, which is read from it, if one is
    check: Check = lambda value, _: value  # which values there are
    several: bool = False  # whether it may have several values
    required: bool = False  # whether it must not be empty


def _word(value: str, vocabulary: Vocabulary, words: str) -> str:
    known: Words = getattr(vocabulary, words)
    word = word_for(value, known)
    # A register that has chosen no agents or domains takes any.
    if word is None and known:
        raise ValueError(f"one of {', '.join(known)}")
    # A register's own spelling of a word is as good as the word; its case is not.
    return word if word and squeeze(word) == squeeze(value) else value


def _number(value: str, _: Vocabulary) -> str:
    if not _NUMBER.fullmatch(value):
        raise ValueError("a number")
    return value


def _day(value: str, _: Vocabulary) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("a date such as 2026-01-31") from None


# The rows that the tool gives a meaning.
KEYS: Mapping[str, MetadataKey] = {
    "severity": MetadataKey(
        ROWS["Severity"], "severity", partial(_word, words="severities"), required=True
    ),
    "status": MetadataKey(
        ROWS["Status"], "status", partial(_word, words="statuses"), required=True
    ),
    "batch": MetadataKey(("Batch",), "batch", _number),
    "agent": MetadataKey(("Agent",), "agent", partial(_word, words="agents")),
    "domain": MetadataKey(
        ("Domain",), "domains", partial(_word, words="domains"), several=True
    ),
    "assignee": MetadataKey(ROWS["Assignee"], "assignee"),
    "created": MetadataKey(("Created", "Date Discovered", "Date"), "created", _day),
    "updated": MetadataKey(ROWS["Updated"], "updated", _day),
    "code-repository": MetadataKey(("Code Repository",), "code_repository"),
}


def edit_of(row: Entry, vocabulary: Vocabulary, today: date, *steps: Step) -> FileEdit:
    """The edit of a document's file that makes all of ``steps`` and keeps ``Updated`` current."""

    def make(data: bytes) -> bytes:
        edit = DocumentEdit(data, row.path, vocabulary, today)
        if edit.document.id.value != row.id:
            message = f"is {edit.document.id.value} now, and was {row.id}"
            raise BadDataError(message, file=row.path, hint="try again")
        try:
            for step in steps:
                step(edit)
        except TicketsError as error:
            # Of several documents, the one that cannot be edited is named.
            error.file = error.file or row.path
            raise
        updated = KEYS["updated"]
        is_dated = row_of(edit.page, updated.labels) and edit.labels.isdisjoint(
            map(squeeze, updated.labels)
        )
        if edit.page.data != data and is_dated:
            write_row(edit, updated, [today.isoformat()])
        return edit.page.data

    return FileEdit(row.path, make)


@as_step
def set_key(edit: DocumentEdit, name: str, given: Sequence[str]) -> None:
    """Give a row of the metadata new values, or the document another title.

    A status changes by the rules of its states alone. Where a row may have several values, ``+x`` adds one to
    those that are there and ``-x`` removes it.

    Raises (the step does):
        UsageError: The key is not known, a value is not what it takes, or the status cannot become that.
        BadDataError: The value cannot be written so that it reads back.
    """
    if squeeze(name) == TITLE:
        _set_title(edit, [one_line(f"{TITLE}=", text) for text in given])
        return
    known, key = _key_for(name, edit.document)
    key = replace(key, labels=(*key.labels, *edit.vocabulary.labels.get(known, ())))
    texts: list[tuple[str, str]] = []
    for value in given:
        sign = ""
        for piece in _SEPARATORS.split(value) if key.several else [value]:
            # What follows without a sign has that before it: ``+x,y,-z``.
            sign = piece[:1] if key.several and piece[:1] in ("+", "-") else sign
            texts.append((sign, one_line(f"{known}=", piece.removeprefix(sign))))
    # Without a sign the values are all that there are.
    kept: dict[str, None] = {}
    row = row_of(edit.page, key.labels)
    raw = row[1].raw if row else ""
    is_list = raw.startswith(("[", "- "))
    if all(sign for sign, _ in texts):
        stated = getattr(edit.document, key.field, ())
        # Of a list in front matter, the items.
        pieces = _SEPARATORS.split(
            plain(re.sub(r"(?m)^\[|\]$|^[ \t]*- ", ",", raw) if is_list else raw)
        )
        there = [each.value for each in stated] or [
            each.strip("\"' \t\r\n") for each in pieces
        ]
        kept = dict.fromkeys(filter(None, there))
    for sign, text in texts:
        if sign == "-" and text not in kept:
            raise UsageError(
                f"{known} has no {text!r}", hint=f"it has {', '.join(kept) or 'none'}"
            )
        kept |= {text: None} if text else {}
        if sign == "-":
            del kept[text]
    values = list(kept)
    if key.several and not key.field and not is_list:
        values = [", ".join(values)] if values else []
    if key.required and not values:
        raise UsageError(f"{known} must not be empty")
    if len(values) > 1 and not key.several:
        raise UsageError(f"{known} is given {len(values)} values, and has one")
    try:
        values = [key.check(value, edit.vocabulary) for value in values]
    except ValueError as error:
        raise UsageError(
            f"{known} cannot be {', '.join(values)!r}", hint=f"it is {error}"
        ) from None
    if key.field == "status":
        current, wanted = (
            status_of(edit.document),
            word_for(values[0], edit.vocabulary.statuses),
        )
        # Setting it to what it is changes at most how it is spelt.
        if current != wanted:
            check_transition(current, "set", Status(wanted or ""))
    write_row(edit, key, values)


def _set_title(edit: DocumentEdit, given: Sequence[str]) -> None:
    """Give a document another title, in its heading or, where that only says what it is, in a row."""
    if len(given) != 1 or not given[0]:
        raise UsageError("a title is one text, and not empty")
    (wanted,), title = given, edit.document.title
    # The markup around a title goes with it; where there is some within it, the whole heading does.
    found = re.fullmatch(
        rf"(.*?)(?:[`*]+ ?)?{re.escape(title.value)}(?: ?[`*]+)?", title.raw, re.DOTALL
    )
    start = title.span.start + (len(found[1].encode()) if found else 0)
    written = spellings([wanted], "", cell=False)
    tries: list[Splices] = [
        [Splice(start, title.span.end, text.encode())] for text in written
    ]
    # A heading that only says what kind of document it is has its title in a row.
    if not found and row_of(edit.page, ["Title"]):
        tries = []
    if title.value != wanted:
        ways = chain(tries, set_row(edit.page, ["Title"], [wanted]))
        edit.change(
            "the title",
            ways,
            lambda each: each.title.value == wanted,
            [TITLE, TITLES],
            [TITLE],
        )


def write_row(edit: DocumentEdit, key: MetadataKey, values: Sequence[str]) -> None:
    """Give a row of the metadata values that are known to be right."""
    labels = set(map(squeeze, key.labels))
    # Two names of one row: neither value may win silently.
    if labels & edit.labels:
        raise UsageError(
            f"{key.labels[0]} is set twice", hint="make the changes one by one"
        )
    edit.labels |= labels
    expected = partial(_reads, key=key, values=values, vocabulary=edit.vocabulary)
    # Nothing to do is no change: Updated keeps its date, too.
    row = row_of(edit.page, key.labels)
    if expected(edit.document) or (not values and row is None):
        return
    # What a resolution amounts to is read in the light of the status.
    fields = {key.field, *(["outcome", "resolution"] if key.field == "status" else [])}
    # Text below a value becomes a paragraph of its own, which may be the first that says what is wrong.
    fields |= {"summary"} if row and len(row[1].raw.splitlines()) > 1 else set()
    what = f"{key.labels[0]} {', '.join(values)}"
    edit.change(what, set_row(edit.page, key.labels, values), expected, fields, labels)


@as_step
def add_duplicate(edit: DocumentEdit, other: str) -> None:
    """Name another ticket among the related findings, as a duplicate."""
    if not isinstance(edit.document, Ticket):
        raise UsageError(
            f"{edit.document.id.value} is a review, which has no list of related findings"
        )
    before = _relations(edit.document)
    if (other, Relationship.DUPLICATE) in before:
        return
    named = {each for each in before if each[0] != other} | {
        (other, Relationship.DUPLICATE)
    }
    # A row may go on to say that they are related, whatever else is said below it.
    ways = (named, named | before, named | {(other, Relationship.RELATED)})
    tries = name_duplicate(edit.page, edit.document.related, other)
    what, fields = f"the relation to {other}", ["related", TITLES]
    edit.change(what, tries, lambda document: _relations(document) in ways, fields)


@as_step
def tick_items(edit: DocumentEdit, numbers: Sequence[int], done: bool) -> None:
    """Tick items of the verification checklist, counted from 1, or clear their boxes."""
    items = edit.document.checklist
    for number in numbers:
        if not 1 <= number <= len(items):
            hint = f"it has {len(items)}" if items else "it has no checklist"
            raise UsageError(
                f"{edit.document.id.value} has no item {number}", hint=hint
            )
    wanted = [
        done if number in numbers else item.done for number, item in enumerate(items, 1)
    ]
    changed = [
        item
        for item, is_done in zip(items, wanted, strict=True)
        if item.done is not is_done
    ]
    if not changed:
        return
    splices = [tick(edit.page, item, done) for item in changed]
    # A resolution may have items of its own, and the categories are boxes as well.
    around = (touched(edit.document, splice.start, splice.end) for splice in splices)
    fields = {"checklist", "categories"}.union(*around)
    edit.change(
        "the boxes of the checklist",
        [splices],
        lambda document: [item.done for item in document.checklist] == wanted,
        fields,
    )


@as_step
def add_to_remediation(edit: DocumentEdit, entries: Entries) -> None:
    """Add variants and claims to the Remediation section of a document.

    Raises (the step does):
        BadDataError: It has none, or they cannot be written so that they read back.
    """
    before = edit.document.remediation
    parts = [part for part in edit.page.parts if part.kind is SectionKind.REMEDIATION]
    if before is None or len(parts) != 1:
        raise BadDataError("has no Remediation section of its own", file=edit.path)
    (block,), source = yaml_blocks(parts[0]), parts[0].source
    splices = add_entries(
        YamlText(source, block.code, source.line(block.first)), entries
    )
    edit.change(
        "the fix",
        [splices],
        lambda now: _extends(before, now.remediation, entries),
        ["remediation"],
    )


@as_step
def add_remediation(edit: DocumentEdit, yaml: str) -> None:
    """Add a Remediation section with a block of YAML to a document that has none.

    Raises (the step does):
        BadDataError: It cannot be written so that it reads back.
    """
    lines = ["```yaml", *yaml.split("\n"), "```"]
    tries = add_section(edit.page, "Remediation", lines, [SectionKind.APPENDIX])
    edit.change(
        "the run",
        tries,
        lambda now: now.remediation is not None,
        ["remediation", TITLES],
    )


def add_to_sidecar(path: str, entries: Entries) -> FileEdit:
    """The edit that adds variants and claims to a Remediation in a file of its own."""

    def make(data: bytes) -> bytes:
        source = Source(path, data, Vocabulary())
        splices = add_entries(YamlText(source, data.decode("utf-8-sig"), 1), entries)
        new = spliced(data, splices)
        (before, _), (after, problems) = (
            read_sidecar(data, path),
            read_sidecar(new, path),
        )
        if problems or not _extends(before, after, entries):
            message = (
                "the fix cannot be written: it would not read back; nothing was changed"
            )
            raise BadDataError(message, file=path, hint="edit the file by hand")
        return new

    return FileEdit(path, make)


def _extends(before: Remediation, after: Remediation | None, entries: Entries) -> bool:
    """Return True if a Remediation is the one before with the new variants and claims."""
    if after is None:
        return False
    claims = {
        f"{variant}.{metric}": str(value)
        for variant, values in entries.get("claims", {}).items()
        for metric, value in values.items()
    }
    refs, known = entries.get("variants", {}), {claim.id for claim in before.claims}
    own = {
        "claims": tuple(claim for claim in after.claims if claim.id in known),
        "variants": before.variants,
    }
    own["moved"] = before.moved
    kept = after.model_copy(
        update={**own, "digest": before.digest, "path": before.path}
    )
    return (
        _meaning(before) == _meaning(kept)
        and [*before.moved_as_stated, *entries.get("moved", [])]
        == after.moved_as_stated
        and claims
        == {each.id: each.value for each in after.claims if each.id not in known}
        and {name: ref.raw for name, ref in before.variants.items()} | refs
        == {name: ref.raw for name, ref in after.variants.items()}
    )


def one_line(what: str, text: str) -> str:
    """A text on one line.

    Raises:
        UsageError: It has characters that no text file should have.
    """
    line = " ".join(text.split())
    if not line.isprintable():
        raise UsageError(f"{what} has characters that cannot be printed: {line!r}")
    return line


def _key_for(name: str, document: Document) -> tuple[str, MetadataKey]:
    """The key that ``name`` means in a document, and its name."""
    wanted = squeeze(name)
    if wanted in _IDS:
        raise UsageError(
            "an ID stays: files, relations and evidence go by it",
            hint="make a new ticket",
        )
    if wanted == "resolution":
        raise UsageError(
            "the resolution is written by closing", hint="tickets close ID --as ..."
        )
    keys = KEYS if isinstance(document, Ticket) else {}
    present = {squeeze(label): label for label in document.metadata}
    label = present.get(wanted)
    for known, key in keys.items():
        # Beside ``Severity``, a row ``Priority`` is a row of its own.
        labels = [squeeze(each) for each in key.labels]
        rows = [each for each in labels if each in present]
        if wanted == squeeze(known) or (
            wanted in labels and (not label or [wanted] == rows[:1])
        ):
            return known, key
    if wanted in _LABELS and not label:
        label = next((present[name] for name in present if name in _LABELS), None)
    if label and wanted:
        return label, MetadataKey((label,), several=wanted in _LABELS)
    if wanted in _LABELS and keys:
        return "domain", KEYS["domain"]
    rows = [
        label.lower()
        for label in document.metadata
        if squeeze(label) not in {*_IDS, "resolution"}
    ]
    settable = list(dict.fromkeys([TITLE, *keys, *rows]))
    raise UsageError(
        f"{name!r} is no key of {document.id.value}",
        hint=suggest(name.lower(), settable),
    )


def _reads(
    document: Document, key: MetadataKey, values: Sequence[str], vocabulary: Vocabulary
) -> bool:
    """Return True if the row of a key and the field that is read from it have these values."""
    stated = getattr(document, key.field, None)
    # How the values are separated is up to the document, so that only what was read of them counts.
    if key.several and key.field:
        return [each.value for each in stated or ()] == list(values)
    labels = list(map(squeeze, key.labels))
    # A list of one, in front matter, is that one.
    rows = [
        plain(text.raw.removeprefix("[").removesuffix("]"))
        for label, text in document.metadata.items()
        if squeeze(label) in labels
    ]
    if ", ".join(values) not in rows:
        return False
    if not values or not hasattr(document, key.field):
        return stated is None
    words = {"severity": vocabulary.severities, "status": vocabulary.statuses}.get(
        key.field, {}
    )
    meant = (
        int(values[0])
        if key.field == "batch"
        else word_for(values[0], words) or values[0]
    )
    return stated is not None and stated.value == meant


def _relations(document: Document) -> set[tuple[str, Relationship]]:
    related = document.related if isinstance(document, Ticket) else ()
    return {(relation.id, relation.relationship) for relation in related}
