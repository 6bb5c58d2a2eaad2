"""What a query is made of: conditions on rows, how they combine, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import Words, word_for
from finding_tickets.register.index import Row

OF_ROW, OF_EVIDENCE, OF_TEXT = range(3)
"""What an answer costs: nothing beyond the row, reading evidence, reading the document's file."""

_MOST_WORDS = 20
_LEAST_LIKENESS = 0.75


class QueryError(UsageError):
    """A query that cannot be understood; ``position`` counts its characters from 0."""

    def __init__(self, message: str, query: str, position: int, hint: str | None = None) -> None:
        super().__init__(f"{message} at column {position + 1} of {query!r}", hint=hint)
        self.position = position


class RowCondition(NamedTuple):
    """Whether a row is meant, and what it costs to ask.

    ``ids`` are those of a condition that names documents and asks for nothing else, in lower case.
    """

    holds: Callable[[Row], bool]
    cost: int = OF_ROW
    ids: tuple[str, ...] = ()


EVERYTHING = RowCondition(lambda _: True)


def combined(how: Callable[[Iterable[bool]], bool], parts: Sequence[RowCondition]) -> RowCondition:
    """That ``all`` or ``any`` of the parts hold; without any part, every row is meant."""
    if len(parts) < 2:
        return parts[0] if parts else EVERYTHING
    # The cheap ones first: a row that they decide about needs no file.
    ordered = sorted(parts, key=lambda part: part.cost)
    named = how is any and all(part.ids for part in parts)
    ids = tuple(name for part in parts for name in part.ids) if named else ()
    return RowCondition(lambda row: how(part.holds(row) for part in ordered), ordered[-1].cost, ids)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was understood.

    ``sorting`` has the most important key first, each with whether it sorts backwards. A key is None for rows
    that do not state it.
    """

    condition: RowCondition
    sorting: tuple[tuple[Callable[[Row], Any], bool], ...] = ()

    def choose(self, rows: Iterable[Row]) -> list[Row]:
        """The rows that are meant, in the order given unless the query asks for another.

        Rows of a query that names nothing but IDs come in the order in which it names them. Rows that do not
        state what they are sorted by come last either way.
        """
        chosen = [row for row in rows if self.condition.holds(row)]
        # Who lists IDs by hand wants them as listed.
        ids = self.condition.ids
        if ids:
            chosen.sort(key=lambda row: ids.index(row.id.casefold()))
        # Python's sort is stable: sorted by the least important key first, rows keep that order among equals.
        for key, backwards in reversed(self.sorting):
            keyed = [(key(row), row) for row in chosen]
            stated = [pair for pair in keyed if pair[0] is not None]
            stated.sort(key=lambda pair: pair[0], reverse=backwards)
            chosen = [row for _, row in stated] + [row for value, row in keyed if value is None]
        return chosen


@dataclass(frozen=True, slots=True)
class QueryValue:
    """One value of a condition as it stands in a query; ``detail`` is what follows a ``=``."""

    key: str
    relation: str
    text: str
    position: int
    query: str
    detail: QueryValue | None = None

    def wrong(self, message: str, hint: str | None = None) -> QueryError:
        """The error that something is wrong with the value."""
        return QueryError(message, self.query, self.position, hint)

    def unknown(self, words: Iterable[str], what: str = "") -> QueryError:
        """The error that the value is none of ``words``."""
        return self.wrong(f"no such {what or self.key} as {self.text!r}", close_words(self.text, words))

    def word(self, words: Words, what: str = "") -> str:
        """The word that the value is a spelling of."""
        word = word_for(self.text, words)
        if word is None:
            raise self.unknown(words, what)
        return word


def close_words(text: str, words: Iterable[str], otherwise: str | None = None) -> str | None:
    """What somebody who wrote ``text`` may have meant, else ``otherwise``, else all words if they are few."""
    from difflib import get_close_matches

    spelt = {word.casefold(): word for word in words}
    close = get_close_matches(text.casefold(), spelt, n=3, cutoff=_LEAST_LIKENESS)
    if close:
        return f"did you mean {' or '.join(spelt[word] for word in close)}?"
    few = 0 < len(spelt) <= _MOST_WORDS
    return otherwise or (f"one of {', '.join(spelt.values())}" if few else None)
