"""Edits of documents, made of steps; each says what is to be read afterwards, and nothing else may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from finding_tickets.documents.edit.changes import Link, relate, row_of, set_row, tick
from finding_tickets.documents.edit.page import Page, open_page
from finding_tickets.documents.edit.splices import Splices, spliced
from finding_tickets.documents.reading import Document, read_document
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import FileEdit
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Relationship, Status, Vocabulary, squeeze, word_for
from finding_tickets.register.disposition import status_of
from finding_tickets.register.index import Row
from finding_tickets.register.keys import KEYS, Key, key_for, reads, values_for
from finding_tickets.register.lifecycle import check
from finding_tickets.register.meaning import differences, titles, touched

TITLES = "titles"
"""Stands for the titles of the sections, among the fields that an edit may change."""


@dataclass(frozen=True)
class Plan:
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


Step = Callable[[Page], Sequence[Plan]]


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
    plans: list[Plan] = field(default_factory=list)

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

    def step(page: Page) -> Sequence[Plan]:
        words = page.source.vocabulary
        known, key = key_for(name, page.document)
        values = values_for(known, key, given, words)
        if key is KEYS["status"]:
            current, wanted = status_of(page.document), Status(word_for(values[0], words.statuses) or "")
            if current is not wanted:
                check(current, "set", wanted)
        return [row_plan(page, key, values)]

    return step


def row_plan(page: Page, key: Key, values: Sequence[str]) -> Plan:
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
        return Plan([])
    splices = page.first(set_row(page, key.labels, values), same, f"{key.labels[0]} {', '.join(values)}")
    return Plan(splices, expected, fields, labels)


def relating(other: str, kind: Relationship, note: str = "") -> Step:
    """Name another ticket among the related findings."""

    def step(page: Page) -> Sequence[Plan]:
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
        tries = relate(page, page.document.related, Link(other, kind, note))
        return [Plan(page.first(tries, same, f"the relation to {other}"), expected, fields)]

    return step


def ticking(numbers: Sequence[int], done: bool) -> Step:
    """Tick items of the verification checklist, counted from 1, or clear their boxes."""

    def step(page: Page) -> Sequence[Plan]:
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
        return [Plan(splices, expected, frozenset({"checklist", "categories"}.union(*around)))]

    return step


def _named(document: Document) -> set[tuple[str, Relationship]]:
    related = document.related if isinstance(document, Ticket) else ()
    return {(relation.id, relation.relationship) for relation in related}


def _updated(page: Page, plans: Sequence[Plan], today: date) -> Sequence[Plan]:
    """Write today's date where the document says when it was last updated."""
    key = KEYS["updated"]
    labels = frozenset(map(squeeze, key.labels))
    if any(plan.labels & labels for plan in plans) or row_of(page, key.labels) is None:
        return []
    if not isinstance(page.document, Ticket):
        key = Key(key.labels, key.check, "")
    return [row_plan(page, key, [today.isoformat()])]


def _errors(problems: Sequence[Problem]) -> set[str]:
    return {problem.rule for problem in problems if problem.level is Level.ERROR}
