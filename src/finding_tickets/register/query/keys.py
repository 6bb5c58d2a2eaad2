"""The keys of a query: which values of a row each asks for, and how a value in the query is compared."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import (
    Relationship,
    Severity,
    Status,
    Verdict,
    Vocabulary,
    Words,
    squeeze,
    word_for,
)
from finding_tickets.register.index import Row, natural
from finding_tickets.register.query.facts import Facts, folded

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What the relations of a query mean of two values with an order."""
UNITS = {"d": 1, "w": 7, "m": 30, "y": 365}
"""Days of the units in which an age is stated."""

_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_IN_TEXT = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_AGE = re.compile(r"(?P<number>\d{1,9})(?P<unit>[dwmy])", re.IGNORECASE)
_AGO = {"today": 0, "yesterday": 1}


def date_in(text: str | None) -> date | None:
    """The first day that a text names as YYYY-MM-DD, if it is one of the calendar."""
    match = _IN_TEXT.search(text or "")
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def date_test(relation: str, value: str, today: date) -> Callable[[date], bool] | None:
    """Whether a day stands in ``relation`` to ``value``; None where that is neither a date nor an age.

    A month or a year is all of its days. An age is compared with that of the day: ``<2w`` is less than two
    weeks ago, and so is ``2w`` or exactly that long.
    """
    age = _AGE.fullmatch(value)
    if age:
        days = int(age["number"]) * UNITS[age["unit"].lower()]
        compare = COMPARE[relation or "<="]
        return lambda day: compare((today - day).days, days)
    if value.casefold() in _AGO:
        value = (today - timedelta(days=_AGO[value.casefold()])).isoformat()
    try:
        # The calendar decides whether there is such a month or day.
        is_date = _DATE.fullmatch(value) and date.fromisoformat(f"{value}-01-01"[: len("YYYY-MM-DD")])
    except ValueError:
        return None
    compare = COMPARE[relation]
    # As text: after a month is after its last day, and up to a month is up to that day.
    return (lambda day: compare(day.isoformat()[: len(value)], value)) if is_date else None


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
        # IDs that are listed by hand keep that order.
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
    """The words that resemble ``text``, else ``otherwise``, else all words if they are few."""
    from difflib import get_close_matches

    spelt = {word.casefold(): word for word in words}
    close = get_close_matches(text.casefold(), spelt, n=3, cutoff=_LEAST_LIKENESS)
    if close:
        return f"did you mean {' or '.join(spelt[word] for word in close)}?"
    few = 0 < len(spelt) <= _MOST_WORDS
    return otherwise or (f"one of {', '.join(spelt.values())}" if few else None)


Values = Callable[[Row, Facts], Iterable[Any]]
Test = Callable[[Any], bool]
Read = Callable[[QueryValue, Facts], Test]

ANYBODY = "*"
SORT = "sort"
SYNONYMS = {
    **dict.fromkeys(("is", "state", "disposition"), "status"),
    **dict.fromkeys(("label", "labels", "tag", "tags", "component", "area"), "domain"),
    **dict.fromkeys(("author", "reporter", "found-by"), "agent"),
    **dict.fromkeys(("path", "location"), "file"),
    "priority": "severity",
    "owner": "assignee",
    "outcome": "resolution",
    "reviewer": "reviewed-by",
}
"""What others call a key; queries name the right one."""
_KINDS: Words = {"finding": ("ticket",), "review": ()}
_VERDICTS: Words = {verdict.value: () for verdict in Verdict}
_RELATIONSHIPS: Words = {relationship.value: () for relationship in Relationship}
_RANKS: Mapping[str, int] = {word: rank for rank, word in enumerate((*Severity, *Status, *Verdict))}
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class QueryKey:
    """A key holds for a row if one of its ``values`` passes the test that ``read`` makes of the query's.

    ``ordered`` values may be compared with ``<`` and its like; ``detailed`` ones may have ``=DETAIL``.
    """

    values: Values
    read: Read
    ordered: bool = False
    detailed: bool = False
    cost: int = OF_ROW


def _attribute(name: str) -> Values:
    """A value that a row has once, or does not state."""
    get = attrgetter(name)
    return lambda row, _: () if (value := get(row)) is None else (value,)


FIELDS: Mapping[str, Values] = {
    **{name: _attribute(name) for name in ("agent", "assignee", "batch", "created", "severity", "status")},
    "category": lambda row, _: row.categories,
    "checklist": lambda row, _: range(row.done + row.undone),
    "domain": lambda row, _: row.domains,
    "file": lambda row, _: row.files,
    "related": lambda row, facts: facts.relations.by_id.get(row.id.casefold(), ()),
    "resolution": _attribute("outcome"),
    "review": lambda row, _: row.reviews,
    "summary": _attribute("summary"),
    "updated": _attribute("updated"),
    "verifier": lambda row, facts: [row.id] if facts.has_verifier(row) else [],
}
"""What a document may state, as ``has:`` and ``no:`` name it; there are no values where it does not."""

_FIELD_WORDS: Words = {
    **dict.fromkeys(FIELDS, ()),
    "category": ("categories",),
    "domain": ("domains",),
    "file": ("files", "location", "locations"),
    "related": ("relation", "relations"),
    "review": ("reviews", "reviewer", "reviewed-by"),
}


def _word(value: QueryValue, facts: Facts, words: Callable[[Vocabulary], Words]) -> Test:
    wanted, compare = value.word(words(facts.config.vocabulary)), COMPARE[value.relation]
    # Only severities have an order: one is greater the worse it is, and the worst one ranks first.
    return lambda word: compare(_RANKS.get(wanted, wanted), _RANKS.get(word, word))


def _number(value: QueryValue, _: Facts) -> Test:
    if not _NUMBER.fullmatch(value.text):
        raise value.wrong(f"{value.key} takes a number, not {value.text!r}")
    wanted, compare = int(value.text), COMPARE[value.relation]
    return lambda number: compare(number, wanted)


def _date(value: QueryValue, facts: Facts) -> Test:
    test = date_test(value.relation, value.text, facts.today)
    if test is None:
        hint = "such as 2025-01-31, 2025-01, today, or <2w for less than two weeks ago"
        raise value.wrong(f"{value.key} takes a date or an age, not {value.text!r}", hint)
    return lambda text: (day := date_in(text)) is not None and test(day)


def _name(value: QueryValue, facts: Facts, words: str, matches: Callable[[str, str], bool]) -> Test:
    """A name that the vocabulary or a document has, if only as ``matches`` takes it."""
    known: Words = getattr(facts.config.vocabulary, words)
    # The words of a vocabulary may be spelt otherwise; a slash at the end of a domain says nothing.
    wanted = word_for(value.text, known) or value.text.rstrip("/")
    seen = (name for row in facts.rows for name in KEYS[value.key].values(row, facts))
    names = dict.fromkeys([*known, *seen])
    if not any(matches(name, wanted) for name in names):
        raise value.unknown(names)
    return lambda name: matches(name, wanted)


def _person(value: QueryValue, facts: Facts) -> Test:
    """Whether a name is that of the person meant, in any spelling of either."""
    if value.text == ANYBODY:
        return lambda _: True
    known = facts.config.vocabulary.known_agents
    seen = [row.agent for row in facts.rows] + [who for row in facts.rows for who, _ in row.reviews]
    people = dict.fromkeys([*known, *filter(None, seen)])
    # A register has many documents and few people.
    spelt = cache(partial(_one_spelling, vocabulary=facts.config.vocabulary))
    wanted = spelt(value.text)
    if wanted not in map(_alike, people):
        raise value.unknown(people, "agent")
    return lambda name: name is not None and spelt(name) == wanted


def _one_spelling(name: str, vocabulary: Vocabulary) -> str:
    word = word_for(name, vocabulary.known_agents)
    if word is None:
        # Most names are words; the reader of Markdown is loaded for the others.
        from finding_tickets.documents.cross_reviews import reviewer_word

        word = reviewer_word(name, vocabulary)
    return _alike(word or name)


def _review(value: QueryValue, facts: Facts) -> Test:
    is_wanted = _person(value, facts)
    if value.detail is None:
        return lambda review: is_wanted(review[0])
    said = {opinion: () for row in facts.rows for _, opinion in row.reviews}
    wanted = _alike(value.detail.word({**said, **facts.config.vocabulary.opinions}, "opinion"))
    return lambda review: is_wanted(review[0]) and _alike(review[1]) == wanted


def _id(value: QueryValue, facts: Facts) -> Test:
    wanted = value.text.casefold()
    if not is_pattern(wanted) and wanted not in facts.ids:
        # Words such as SHA-256 have the form of an ID and may be meant as text.
        hint = close_words(value.text, facts.ids.values(), "quote it to search for it")
        raise value.wrong(f"no document has the ID {value.text!r}", hint)
    return lambda document_id: fnmatchcase(document_id.casefold(), wanted)


def _related(value: QueryValue, facts: Facts) -> Test:
    """Related to an ID, whichever of the two says so; a detail is what the row says or would say."""
    wanted = value.text.casefold()
    if not is_pattern(wanted) and wanted not in facts.ids and wanted not in facts.relations.by_id:
        named = (name for edge in facts.relations.edges for name in (edge.source, edge.target))
        hint = close_words(value.text, [*facts.ids.values(), *named])
        raise value.wrong(f"no document has or names the ID {value.text!r}", hint)
    how = value.detail.word(_RELATIONSHIPS, "relationship") if value.detail else None
    return lambda relation: fnmatchcase(relation[0], wanted) and how in {None, relation[1]}


def _file(value: QueryValue, _: Facts) -> Test:
    """Whole components of a path, one after another: ``src``, ``x.py`` or ``src/x.py`` of ``/a/src/x.py``."""
    wanted = [part for part in value.text.casefold().split("/") if part not in {"", "."}]
    if not wanted:
        raise value.wrong(f"file takes a path, not {value.text!r}")

    def is_part_of(path: str) -> bool:
        parts = path.casefold().split("/")
        starts = range(len(parts) - len(wanted) + 1)
        return any(all(map(fnmatchcase, parts[start:], wanted)) for start in starts)

    return is_part_of


def _stated(value: QueryValue, _: Facts, expected: bool = True) -> Test:
    values = FIELDS[value.word(_FIELD_WORDS, "field")]
    return lambda row_and_facts: bool(values(*row_and_facts)) is expected


def _alike(text: str) -> str:
    """What spellings of one name have in common, in any script."""
    return squeeze(text) or folded(text)


def is_pattern(text: str) -> bool:
    """Whether ``*``, ``?`` or ``[`` stand for other characters in a value."""
    return not {"*", "?", "["}.isdisjoint(text)


KEYS: Mapping[str, QueryKey] = {
    "id": QueryKey(_attribute("id"), _id),
    "kind": QueryKey(_attribute("kind"), partial(_word, words=lambda _: _KINDS)),
    "title": QueryKey(
        _attribute("title"), lambda value, _: lambda title: folded(value.text) in folded(title)
    ),
    "severity": QueryKey(FIELDS["severity"], partial(_word, words=attrgetter("severities")), ordered=True),
    "status": QueryKey(FIELDS["status"], partial(_word, words=attrgetter("statuses"))),
    "resolution": QueryKey(FIELDS["resolution"], partial(_word, words=attrgetter("outcomes"))),
    "verdict": QueryKey(
        lambda row, facts: [facts.measured(row).verdict],
        partial(_word, words=lambda _: _VERDICTS),
        cost=OF_EVIDENCE,
    ),
    "batch": QueryKey(FIELDS["batch"], _number, ordered=True),
    # `agent:*` also matches documents without an agent.
    "agent": QueryKey(lambda row, _: [row.agent], _person),
    "assignee": QueryKey(
        FIELDS["assignee"], lambda value, _: lambda name: folded(name) == folded(value.text)
    ),
    "domain": QueryKey(
        FIELDS["domain"],
        partial(
            _name,
            words="domains",
            matches=lambda name, wanted: f"{name}/".casefold().startswith(f"{wanted}/".casefold()),
        ),
    ),
    "category": QueryKey(
        FIELDS["category"],
        partial(_name, words="categories", matches=lambda name, wanted: _alike(wanted) in _alike(name)),
    ),
    "file": QueryKey(FIELDS["file"], _file),
    "reviewed-by": QueryKey(FIELDS["review"], _review, detailed=True),
    "related": QueryKey(FIELDS["related"], _related, detailed=True),
    "created": QueryKey(FIELDS["created"], _date, ordered=True),
    "updated": QueryKey(FIELDS["updated"], _date, ordered=True),
    "done": QueryKey(_attribute("done"), _number, ordered=True),
    "undone": QueryKey(_attribute("undone"), _number, ordered=True),
    "has": QueryKey(lambda row, facts: [(row, facts)], _stated),
    "no": QueryKey(lambda row, facts: [(row, facts)], partial(_stated, expected=False)),
}

SORTS: Mapping[str, Callable[[Row, Facts], Any]] = {
    "id": lambda row, _: natural(row.id),
    "path": lambda row, _: row.path,
    "title": lambda row, _: row.title.casefold(),
    "severity": lambda row, _: row.severity,
    "status": lambda row, _: _RANKS.get(row.status or ""),
    "verdict": lambda row, facts: _RANKS[facts.measured(row).verdict],
    "batch": lambda row, _: row.batch,
    "agent": lambda row, _: row.agent and row.agent.casefold(),
    "assignee": lambda row, _: row.assignee and row.assignee.casefold(),
    "created": lambda row, _: date_in(row.created),
    "updated": lambda row, _: date_in(row.updated),
    "done": lambda row, _: row.done,
    "undone": lambda row, _: row.undone,
}
"""Severities come from the worst, statuses in the order of a ticket's life, verdicts as documented."""
