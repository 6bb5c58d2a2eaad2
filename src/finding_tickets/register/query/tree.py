"""What a query is made of. Each node says whether it holds for a row, and how much it costs to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import squeeze
from finding_tickets.register.index import Row

Test = Callable[[Row], bool]

OF_ROW, OF_EVIDENCE, OF_TEXT = range(3)
"""What an answer costs: nothing beyond the row, reading evidence, reading the document's file."""

_MOST_WORDS = 20
_LEAST_LIKENESS = 0.75


class QueryError(UsageError):
    """A query that cannot be understood; ``position`` counts its characters from 0."""

    def __init__(self, message: str, query: str, position: int, hint: str | None = None) -> None:
        super().__init__(f"{message} at column {position + 1} of {query!r}", hint=hint)
        self.position = position


@dataclass(frozen=True, slots=True)
class Combination:
    """Several parts, of which the cheapest are asked first."""

    parts: tuple[Node, ...]

    @property
    def cost(self) -> int:
        """That of the dearest part."""
        return max((part.cost for part in self.parts), default=OF_ROW)


class All(Combination):
    """Every part holds."""

    __slots__ = ()

    def holds(self, row: Row) -> bool:
        """Whether the row is one of those meant."""
        return all(part.holds(row) for part in self.parts)


class Any(Combination):
    """At least one part holds."""

    __slots__ = ()

    def holds(self, row: Row) -> bool:
        """Whether the row is one of those meant."""
        return any(part.holds(row) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Node

    @property
    def cost(self) -> int:
        """That of the part."""
        return self.part.cost

    def holds(self, row: Row) -> bool:
        """Whether the row is one of those meant."""
        return not self.part.holds(row)


@dataclass(frozen=True, slots=True)
class Condition:
    """``key:value`` with one value; ``relation`` is empty where there is none, ``detail`` follows a ``=``."""

    key: str
    relation: str
    value: str
    detail: str | None
    test: Test = field(compare=False, repr=False)
    cost: int = field(default=OF_ROW, compare=False, repr=False)

    def holds(self, row: Row) -> bool:
        """Whether the row is one of those meant."""
        return self.test(row)


@dataclass(frozen=True, slots=True)
class TextSearch:
    """The document has ``words`` somewhere, in any case and over any line break."""

    words: str
    test: Test = field(compare=False, repr=False)

    @property
    def cost(self) -> int:
        """Reading the document."""
        return OF_TEXT

    def holds(self, row: Row) -> bool:
        """Whether the row is one of those meant."""
        return self.test(row)


Node = All | Any | Not | Condition | TextSearch


@dataclass(frozen=True, slots=True)
class Sort:
    """What the chosen are sorted by; rows that do not state it come last either way."""

    key: str
    backwards: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was understood.

    ``sorting`` has the most important key first. ``named`` are the IDs of a query that consists of nothing
    else, in lower case: its rows come in that order.
    """

    tree: Node
    sorting: tuple[Sort, ...] = ()
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """One value of a condition as it stands in a query; ``detail`` is what follows a ``=``."""

    key: str
    relation: str
    text: str
    position: int
    query: str
    detail: Written | None = None

    def wrong(self, message: str, hint: str | None = None) -> QueryError:
        """The error that something is wrong with the value."""
        return QueryError(message, self.query, self.position, hint)


def close_words(text: str, words: Iterable[str], otherwise: str | None = None) -> str | None:
    """What somebody who wrote ``text`` may have meant, else ``otherwise``, else all words if they are few."""
    from difflib import get_close_matches

    spelt = {word.casefold(): word for word in words}
    close = get_close_matches(text.casefold(), spelt, n=3, cutoff=_LEAST_LIKENESS)
    if close:
        return f"did you mean {' or '.join(spelt[word] for word in close)}?"
    few = 0 < len(spelt) <= _MOST_WORDS
    return otherwise or (f"one of {', '.join(spelt.values())}" if few else None)


def folded(text: str) -> str:
    """``text`` without case and with single spaces, so that texts can be searched."""
    return " ".join(text.casefold().split())


def alike(text: str) -> str:
    """What spellings of one name have in common, in any script."""
    return squeeze(text) or folded(text)
