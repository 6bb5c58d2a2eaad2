"""What people do to a document: set values, tick items, relate it to others.

An edit is made of steps; each says what is to be read afterwards, and nothing else may change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from finding_tickets.documents.edit.changes import RelationLink, relate, row_of, set_row, tick
from finding_tickets.documents.edit.page import Page, open_page
from finding_tickets.documents.edit.splices import Splices, spliced
from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import plain
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import FileEdit
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Relationship, Status, Vocabulary, Words, squeeze, word_for
from finding_tickets.register.disposition import check_transition, status_of
from finding_tickets.register.index import Row
from finding_tickets.register.semantic_diff import differences, titles, touched

_IDS = frozenset(["id", "ticketid", "reviewid", "ticket"])
_NUMBER = re.compile(r"[0-9]{1,9}")
_SEPARATORS = re.compile(r"\s*[,;]\s*")

Check = Callable[[str, Vocabulary], str]


class _WrongValueError(ValueError):
    """What a value should have been."""


@dataclass(frozen=True)
class MetadataKey:
    """A row of the metadata that the tool gives a meaning.

    Attributes:
        labels: What the row may be called; a new one is called by the first.
        check: The value as it is written, or what is wrong with it.
        field: The field of the ticket that is read from it.
        several: Whether it may have several values.
        optional: Whether it may be empty.
    """

    labels: tuple[str, ...]
    check: Check
    field: str
    several: bool = False
    optional: bool = False


def _word(words_of: Callable[[Vocabulary], Words]) -> Check:
    def check(value: str, vocabulary: Vocabulary) -> str:
        words = words_of(vocabulary)
        word = word_for(value, words)
        if word is None:
            raise _WrongValueError(f"one of {', '.join(words)}")
        # A register's own spelling of a word is as good as the word; its case is not.
        return word if squeeze(word) == squeeze(value) else value

    return check


def _number(value: str, _: Vocabulary) -> str:
    if not _NUMBER.fullmatch(value):
        raise _WrongValueError("a number")
    return value


def _day(value: str, _: Vocabulary) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise _WrongValueError("a date such as 2026-01-31") from None


def _text(value: str, _: Vocabulary) -> str:
    return value


def _word_if_chosen(words_of: Callable[[Vocabulary], Words]) -> Check:
    """A word of those that the register has chosen; any, where it has chosen none."""
    check = _word(words_of)
    return lambda value, vocabulary: check(value, vocabulary) if words_of(vocabulary) else value


KEYS: Mapping[str, MetadataKey] = {
    "severity": MetadataKey(("Severity",), _word(lambda words: words.severities), "severity"),
    "status": MetadataKey(("Status",), _word(lambda words: words.statuses), "status"),
    "batch": MetadataKey(("Batch",), _number, "batch", optional=True),
    "agent": MetadataKey(("Agent",), _word_if_chosen(lambda words: words.agents), "agent", optional=True),
    "domain": MetadataKey(
        ("Domain",), _word_if_chosen(lambda words: words.domains), "domains", several=True, optional=True
    ),
    "assignee": MetadataKey(("Assignee",), _text, "assignee", optional=True),
    "created": MetadataKey(("Created", "Date Discovered", "Date"), _day, "created", optional=True),
    "updated": MetadataKey(("Updated",), _day, "updated", optional=True),
    "code-repository": MetadataKey(("Code Repository",), _text, "code_repository", optional=True),
}


def key_for(name: str, document: Document) -> tuple[str, MetadataKey]:
    """The key that ``name`` means in a document, and its name.

    Raises:
        UsageError: The tool does not know it and the document has no such row, or it is not for setting.
    """
    wanted = squeeze(name)
    if wanted in _IDS:
        raise UsageError("an ID stays: files, relations and evidence go by it", hint="make a new ticket")
    if wanted == "resolution":
        raise UsageError("the resolution is written by closing", hint="tickets close ID --as ...")
    if isinstance(document, Ticket):
        for known, key in KEYS.items():
            if wanted in {squeeze(known), *map(squeeze, key.labels)}:
                return known, key
    label = next((label for label in document.metadata if squeeze(label) == wanted), None)
    if label and wanted:
        return label, MetadataKey((label,), _text, "", optional=True)
    raise UsageError(f"{name!r} is no key of {document.id.value}", hint=_suggestion(name, document))


def values_for(name: str, key: MetadataKey, given: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """The values as they are to be written: none for a row that is to be empty.

    Raises:
        UsageError: A value is not what the key takes.
    """
    texts = [text for value in given for text in (_SEPARATORS.split(value) if key.several else [value])]
    values = list(dict.fromkeys(one_line(f"{name}=", text) for text in texts))
    if values in ([], [""]):
        if key.optional:
            return []
        raise UsageError(f"{name} must not be empty")
    if len(values) > 1 and not key.several:
        raise UsageError(f"{name} is given {len(values)} values, and has one")
    try:
        return [key.check(value, vocabulary) for value in values if value]
    except _WrongValueError as error:
        raise UsageError(f"{name} cannot be {', '.join(values)!r}", hint=f"it is {error}") from None


def one_line(what: str, text: str) -> str:
    """A text on one line.

    Raises:
        UsageError: It has characters that no text file should have.
    """
    line = " ".join(text.split())
    if not line.isprintable():
        raise UsageError(f"{what} has characters that cannot be printed: {line!r}")
    return line


def reads(document: Document, key: MetadataKey, values: Sequence[str], vocabulary: Vocabulary) -> bool:
    """Whether the row of a key has these values."""
    if key.field == "domains":
        return isinstance(document, Ticket) and [each.value for each in document.domains] == list(values)
    labels = list(map(squeeze, key.labels))
    found = [plain(text.raw) for label, text in document.metadata.items() if squeeze(label) in labels]
    return (values[0] if values else "") in found and _field_fits(document, key, values, vocabulary)


def _field_fits(document: Document, key: MetadataKey, values: Sequence[str], vocabulary: Vocabulary) -> bool:
    if not key.field:
        return True
    stated = getattr(document, key.field)
    if stated is None or not values:
        return (stated is None) is not bool(values)
    words = {"severity": vocabulary.severities, "status": vocabulary.statuses}.get(key.field)
    wanted = word_for(values[0], words) if words else values[0]
    return str(stated.value) == wanted or (key.field == "batch" and stated.value == int(values[0]))


def _suggestion(name: str, document: Document) -> str:
    from difflib import get_close_matches

    rows = [label.lower() for label in document.metadata if squeeze(label) not in {*_IDS, "resolution"}]
    known = [*(KEYS if isinstance(document, Ticket) else ()), *rows]
    close = get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"one of {', '.join(dict.fromkeys(known))}"


TITLES = "titles"
"""Stands for the titles of the sections, among the fields that an edit may change."""


@dataclass(frozen=True)
class EditPlan:
    """What a step does to a page.

    Attributes:
        splices: The bytes that it replaces.
        expected: Whether a document reads as it should afterwards.
        fields: The fields of the record that may differ.
        labels: The rows of the metadata that may differ, as they are compared.
    """

    splices: Splices
    expected: Callable[[Document], bool] = lambda _: True
    fields: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()


Step = Callable[[Page], Sequence[EditPlan]]


@dataclass
class DocumentEdit:
    """One edit of one document: what its steps make of the bytes that are read under the lock.

    Attributes:
        row: The document as it was found.
        vocabulary: The words of its register.
        today: The day that ``Updated`` will name.
        steps: What is to be done, in this order.
    """

    row: Row
    vocabulary: Vocabulary
    today: date
    steps: Sequence[Step]
    plans: list[EditPlan] = field(default_factory=list)

    def make(self, data: bytes) -> bytes:
        """The document after the edit.

        Raises:
            UsageError: A step cannot be made.
            BadDataError: It is another document now, or would not read back as expected.
        """
        try:
            new = spliced(data, self.splices(data))
        except ValueError:
            raise UsageError(
                "two of the changes are about the same text", hint="make them one by one"
            ) from None
        if new != data:
            self.confirm(data, new)
        return new

    def splices(self, data: bytes) -> Splices:
        """What the steps replace in these bytes, which ``confirm`` then expects."""
        page = open_page(data, self.row.path, self.vocabulary)
        if page.document.id.value != self.row.id:
            message = f"is {page.document.id.value} now, and was {self.row.id}"
            raise BadDataError(message, file=self.row.path, hint="try again")
        self.plans = [plan for step in self.steps for plan in step(page)]
        if any(plan.splices for plan in self.plans):
            self.plans += _updated(page, self.plans, self.today)
        return [splice for plan in self.plans for splice in plan.splices]

    def confirm(self, old: bytes, new: bytes) -> None:
        """Raise ``BadDataError`` unless the new bytes say what was asked for, and nothing else differs."""
        before, had = read_document(old, self.row.path, self.vocabulary)
        after, has = read_document(new, self.row.path, self.vocabulary)
        if before is None or after is None or not all(plan.expected(after) for plan in self.plans):
            raise self._refusal("does not read back")
        labels = {label for plan in self.plans for label in plan.labels}
        fields = {name for plan in self.plans for name in plan.fields}
        changed = differences(before, after, fields, labels)
        if TITLES not in fields and titles(before) != titles(after):
            changed.append("sections")
        if changed:
            raise self._refusal(f"would change {', '.join(changed)} as well")
        if _errors(has) - _errors(had):
            raise self._refusal(f"would be an error: {', '.join(sorted(_errors(has) - _errors(had)))}")

    def _refusal(self, why: str) -> BadDataError:
        message = f"the edit {why}; nothing was changed"
        return BadDataError(message, file=self.row.path, hint="edit the file by hand")


def edit_of(row: Row, vocabulary: Vocabulary, today: date, *steps: Step) -> FileEdit:
    """The edit of a document's file that makes all of ``steps`` and keeps ``Updated`` current."""
    return FileEdit(row.path, DocumentEdit(row, vocabulary, today, steps).make)


def setting(name: str, given: Sequence[str]) -> Step:
    """Give a row of the metadata new values; a status by the rules of its states alone.

    Raises (the step does):
        UsageError: The key is not known, a value is not what it takes, or the status cannot become that.
        BadDataError: The value cannot be written so that it reads back.
    """

    def step(page: Page) -> Sequence[EditPlan]:
        words = page.source.vocabulary
        known, key = key_for(name, page.document)
        values = values_for(known, key, given, words)
        if key is KEYS["status"]:
            current, wanted = status_of(page.document), Status(word_for(values[0], words.statuses) or "")
            if current is not wanted:
                check_transition(current, "set", wanted)
        return [row_plan(page, key, values)]

    return step


def row_plan(page: Page, key: MetadataKey, values: Sequence[str]) -> EditPlan:
    """Give a row of the metadata values that are known to be right."""
    words = page.source.vocabulary

    def expected(document: Document) -> bool:
        return reads(document, key, values, words)

    def same(document: Document) -> bool:
        return expected(document) and not differences(page.document, document, fields, labels)

    labels = frozenset(map(squeeze, key.labels))
    # What a resolution amounts to is read in the light of the status.
    fields = frozenset({key.field, *(["outcome", "resolution"] if key is KEYS["status"] else [])})
    if expected(page.document) or (not values and row_of(page, key.labels) is None):
        return EditPlan([])
    splices = page.first(set_row(page, key.labels, values), same, f"{key.labels[0]} {', '.join(values)}")
    return EditPlan(splices, expected, fields, labels)


def relating(other: str, kind: Relationship, note: str = "") -> Step:
    """Name another ticket among the related findings."""

    def step(page: Page) -> Sequence[EditPlan]:
        def expected(document: Document) -> bool:
            named = _named(document)
            # A table without a column for it says that they are related, whatever else is said below it.
            rest = named - {(other, kind), (other, Relationship.RELATED)}
            return (other, kind) in named and rest == {each for each in before if each[0] != other}

        def same(document: Document) -> bool:
            return expected(document) and not differences(page.document, document, fields, ())

        fields = frozenset({"related", TITLES})
        if not isinstance(page.document, Ticket):
            message = f"{page.document.id.value} is a review, which has no list of related findings"
            raise UsageError(message)
        before = _named(page.document)
        if (other, kind) in before:
            return []
        tries = relate(page, page.document.related, RelationLink(other, kind, note))
        return [EditPlan(page.first(tries, same, f"the relation to {other}"), expected, fields)]

    return step


def ticking(numbers: Sequence[int], done: bool) -> Step:
    """Tick items of the verification checklist, counted from 1, or clear their boxes."""

    def step(page: Page) -> Sequence[EditPlan]:
        items = page.document.checklist
        splices = []
        for number in dict.fromkeys(numbers):
            if not 1 <= number <= len(items):
                hint = f"it has {len(items)}" if items else "it has no checklist"
                raise UsageError(f"{page.document.id.value} has no item {number}", hint=hint)
            if items[number - 1].done != done:
                splices.append(tick(page, items[number - 1], done))
        wanted = [done if number in numbers else item.done for number, item in enumerate(items, 1)]

        def expected(document: Document) -> bool:
            return [item.done for item in document.checklist] == wanted

        around = (touched(page.document, splice.start, splice.end) for splice in splices)
        return [EditPlan(splices, expected, frozenset({"checklist", "categories"}.union(*around)))]

    return step


def _named(document: Document) -> set[tuple[str, Relationship]]:
    related = document.related if isinstance(document, Ticket) else ()
    return {(relation.id, relation.relationship) for relation in related}


def _updated(page: Page, plans: Sequence[EditPlan], today: date) -> Sequence[EditPlan]:
    """Write today's date where the document says when it was last updated."""
    key = KEYS["updated"]
    labels = frozenset(map(squeeze, key.labels))
    if any(plan.labels & labels for plan in plans) or row_of(page, key.labels) is None:
        return []
    if not isinstance(page.document, Ticket):
        key = MetadataKey(key.labels, key.check, "")
    return [row_plan(page, key, [today.isoformat()])]


def _errors(problems: Sequence[Problem]) -> set[str]:
    return {problem.rule for problem in problems if problem.level is Level.ERROR}
