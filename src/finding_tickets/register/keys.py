"""The keys of the metadata that can be set, and what each takes for a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import plain
from finding_tickets.errors import UsageError
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Vocabulary, Words, squeeze, word_for

_IDS = frozenset(["id", "ticketid", "reviewid", "ticket"])
_NUMBER = re.compile(r"[0-9]{1,9}")
_SEPARATORS = re.compile(r"\s*[,;]\s*")

Check = Callable[[str, Vocabulary], str]


class _WrongValueError(ValueError):
    """What a value should have been."""


@dataclass(frozen=True)
class Key:
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


KEYS: Mapping[str, Key] = {
    "severity": Key(("Severity",), _word(lambda words: words.severities), "severity"),
    "status": Key(("Status",), _word(lambda words: words.statuses), "status"),
    "batch": Key(("Batch",), _number, "batch", optional=True),
    "agent": Key(("Agent",), _word_if_chosen(lambda words: words.agents), "agent", optional=True),
    "domain": Key(
        ("Domain",), _word_if_chosen(lambda words: words.domains), "domains", several=True, optional=True
    ),
    "assignee": Key(("Assignee",), _text, "assignee", optional=True),
    "created": Key(("Created", "Date Discovered", "Date"), _day, "created", optional=True),
    "updated": Key(("Updated",), _day, "updated", optional=True),
    "code-repository": Key(("Code Repository",), _text, "code_repository", optional=True),
}


def key_for(name: str, document: Document) -> tuple[str, Key]:
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
        return label, Key((label,), _text, "", optional=True)
    raise UsageError(f"{name!r} is no key of {document.id.value}", hint=_suggestion(name, document))


def values_for(name: str, key: Key, given: Sequence[str], vocabulary: Vocabulary) -> list[str]:
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


def reads(document: Document, key: Key, values: Sequence[str], vocabulary: Vocabulary) -> bool:
    """Whether the row of a key has these values."""
    if key.field == "domains":
        return isinstance(document, Ticket) and [each.value for each in document.domains] == list(values)
    labels = list(map(squeeze, key.labels))
    found = [plain(text.raw) for label, text in document.metadata.items() if squeeze(label) in labels]
    return (values[0] if values else "") in found and _field_fits(document, key, values, vocabulary)


def _field_fits(document: Document, key: Key, values: Sequence[str], vocabulary: Vocabulary) -> bool:
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
