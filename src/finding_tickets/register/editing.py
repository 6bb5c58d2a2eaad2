"""A document while it is edited: every change is read back at once, and nothing else may read differently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from finding_tickets.documents.edit.splices import Splices, spliced
from finding_tickets.documents.reading import Document, Page, read_page
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Problem, Record, Span, Text
from finding_tickets.model.vocabulary import Level, Vocabulary, squeeze

TITLES = "section titles"
"""Stands for the titles of the sections, among the fields that a change may affect."""

_PLACES = frozenset(["span", "line"])


class DocumentEdit:
    """The document as the changes so far have left it; ``labels`` are the rows of the metadata they set.

    Raises:
        BadDataError: There is no document in the bytes.
    """

    def __init__(self, data: bytes, path: str, vocabulary: Vocabulary, today: date) -> None:
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
        """What is read from the bytes as they are now."""
        return self.page.document

    def change(
        self,
        what: str,
        tries: Iterable[Splices],
        expected: Callable[[Document], bool],
        fields: Collection[str],
        labels: Collection[str] = (),
    ) -> None:
        """Make the first of several ways to write ``what`` that reads back and affects nothing else.

        Args:
            what: What is written, for the message where there is no way.
            tries: The bytes that each way replaces, the most likely one first.
            expected: Whether a document reads as it should afterwards.
            fields: The fields of the record that may differ, besides those read from the rows ``labels``.
            labels: The rows of the metadata that may differ, as they are compared.

        Raises:
            BadDataError: There is no such way.
        """
        why = "it would not read back"
        for splices in tries:
            # Only reading tells whether a way works: documents have too many forms to know it beforehand.
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
    return [name for name in {**old, **new} if name not in expected and old.get(name) != new.get(name)]


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
    """What each field says, wherever it stands.

    The metadata is compared row by row, without ``labels``. Of the sections only the titles count: their
    texts are the bytes of the file, which a change keeps or replaces.
    """
    rows = {label: text.raw for label, text in document.metadata.items() if squeeze(label) not in labels}
    set_at = [text.span.start for label, text in document.metadata.items() if squeeze(label) in labels]
    # A heading may be the row that is changed: ``## Severity: High``.
    titles = [
        (section.level, section.title)
        for section in document.sections
        if not any(section.heading.start <= at < section.heading.end for at in set_at)
    ]
    fields = {name: _meaning(value) for name, value in document if name not in {"metadata", "sections"}}
    return {**fields, "other metadata": rows, TITLES: titles}


def _meaning(value: Any) -> Any:
    """A value without the places that it names."""
    if isinstance(value, Record):
        return {name: _meaning(each) for name, each in value if name not in _PLACES}
    if isinstance(value, Mapping):
        return {key: _meaning(each) for key, each in value.items()}
    return [_meaning(each) for each in value] if isinstance(value, tuple) else value


def _spans(value: Any) -> Iterator[Span]:
    """Where a value and everything in it stand."""
    if isinstance(value, Text):
        yield value.span
    if isinstance(value, Record):
        value = tuple(each for _, each in value)
    for each in value if isinstance(value, tuple) else ():
        yield from _spans(each)
