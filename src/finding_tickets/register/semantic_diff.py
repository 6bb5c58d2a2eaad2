"""What a document says, apart from where and how it is written: what an edit must leave as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.model.record import Span, Text
from finding_tickets.model.vocabulary import squeeze

_PLACES = frozenset(["span", "line", "column"])
# Compared by itself, row by row; and a text that is only the bytes, which an edit keeps or replaces.
_APART = frozenset(["metadata", "sections"])


def differences(
    before: Document, after: Document, fields: Collection[str], labels: Collection[str]
) -> list[str]:
    """What the documents say differently, beside ``fields`` and the rows of the metadata with ``labels``."""
    but = _APART.union(fields, _read_from(before, labels), _read_from(after, labels))
    old, new = _meaning(before), _meaning(after)
    found = [name for name in {**old, **new} if name not in but and old.get(name) != new.get(name)]
    return [*found, *(["other metadata"] if _rows(before, labels) != _rows(after, labels) else [])]


def titles(document: Document) -> list[tuple[int, str]]:
    """Level and title of every section."""
    return [(each.level, each.title) for each in document.sections]


def touched(document: Document, start: int, end: int) -> Iterator[str]:
    """The fields that are read from text which the bytes ``[start, end]`` are part of."""
    for name in _names(document):
        spans = _spans(getattr(document, name))
        if any(span.start <= end and start <= span.end for span in spans):
            yield name


def _read_from(document: Document, labels: Collection[str]) -> Iterator[str]:
    for label, value in document.metadata.items():
        if squeeze(label) in labels:
            yield from touched(document, value.span.start, value.span.end)


def _rows(document: Document, but: Collection[str]) -> dict[str, str]:
    return {label: value.raw for label, value in document.metadata.items() if squeeze(label) not in but}


def _spans(value: Any) -> Iterator[Span]:
    """Where a value and everything in it stand."""
    if isinstance(value, Text):
        yield value.span
    within = value if isinstance(value, Sequence) else [getattr(value, name) for name in _names(value)]
    for each in within if not isinstance(value, str) else ():
        yield from _spans(each)


def _meaning(value: Any) -> Any:
    """A value without the places that it names."""
    if value is None or isinstance(value, str | int | float | Enum):
        return value
    if isinstance(value, Mapping):
        return {key: _meaning(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_meaning(each) for each in value]
    return {name: _meaning(getattr(value, name)) for name in _names(value) if name not in _PLACES}


def _names(value: Any) -> Iterable[str]:
    """The fields of a record, which may be a dataclass or a model; of any other value none."""
    return tuple(getattr(type(value), "model_fields", getattr(value, "__dataclass_fields__", ())))
