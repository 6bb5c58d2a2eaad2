"""The keys of a query: what each compares its value with, and which values there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from finding_tickets.model.vocabulary import Relationship, Severity, Status, Verdict, Words, word_for
from finding_tickets.register.index import Row, natural
from finding_tickets.register.query.dates import COMPARE, date_in, date_test
from finding_tickets.register.query.facts import Facts, Lexicon
from finding_tickets.register.query.tree import (
    OF_EVIDENCE,
    OF_ROW,
    QueryError,
    Test,
    Written,
    alike,
    close_words,
    folded,
)

Read = Callable[[Written, Lexicon], Test]
Get = Callable[[Row], str | None]

VERDICTS: Words = {verdict.value: () for verdict in Verdict}
KINDS: Words = {"finding": ("ticket",), "review": ()}
RELATIONSHIPS: Words = {relationship.value: () for relationship in Relationship}
ANYBODY = "*"
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class QueryKey:
    """A key: ``read`` makes a test of a value, or says what is wrong with it.

    ``ordered`` values may be compared with ``<`` and its like; ``detailed`` ones may have ``=DETAIL``.
    """

    read: Read
    ordered: bool = False
    detailed: bool = False
    cost: int = OF_ROW


def _word(written: Written, words: Words) -> str:
    """The word that a value is a spelling of."""
    word = word_for(written.text, words)
    if word is None:
        raise _no_such(written.key, written, words)
    return word


def _no_such(what: str, written: Written, words: Iterable[str]) -> QueryError:
    """The error that a value is none of ``words``."""
    return written.wrong(f"no such {what} as {written.text!r}", close_words(written.text, words))


def _is(get: Get, words: Callable[[Lexicon], Words]) -> Read:
    def read(written: Written, lexicon: Lexicon) -> Test:
        wanted = _word(written, words(lexicon))
        return lambda row: get(row) == wanted

    return read


def _severity(written: Written, lexicon: Lexicon) -> Test:
    """Severities compare by how bad they are: P0 is greater than P1."""
    ranks = {severity.value: -number for number, severity in enumerate(Severity)}
    wanted, compare = ranks[_word(written, lexicon.vocabulary.severities)], COMPARE[written.relation]
    return lambda row: row.severity is not None and compare(ranks[row.severity], wanted)


def _verdict(written: Written, lexicon: Lexicon) -> Test:
    wanted, facts = _word(written, VERDICTS), lexicon.facts
    return lambda row: facts.verdict(row) == wanted


def _number(get: Callable[[Row], int | None]) -> Read:
    def read(written: Written, _lexicon: Lexicon) -> Test:
        if not _NUMBER.fullmatch(written.text):
            raise written.wrong(f"{written.key} takes a number, not {written.text!r}")
        wanted, compare = int(written.text), COMPARE[written.relation]
        return lambda row: (number := get(row)) is not None and compare(number, wanted)

    return read


def _date(get: Get) -> Read:
    def read(written: Written, lexicon: Lexicon) -> Test:
        test = date_test(written.relation, written.text, lexicon.today)
        if test is None:
            hint = "such as 2025-01-31, 2025-01, today, or <2w for less than two weeks ago"
            raise written.wrong(f"{written.key} takes a date or an age, not {written.text!r}", hint)
        return lambda row: (day := date_in(get(row))) is not None and test(day)

    return read


def _agent(written: Written, lexicon: Lexicon) -> Test:
    is_wanted = _person(written, lexicon)
    return lambda row: is_wanted(row.agent)


def _reviewed_by(written: Written, lexicon: Lexicon) -> Test:
    is_wanted = _person(written, lexicon)
    said = _opinion(written, lexicon)
    return lambda row: any(is_wanted(reviewer) and said(opinion) for reviewer, opinion in row.reviews)


def _person(written: Written, lexicon: Lexicon) -> Callable[[str | None], bool]:
    """Whether somebody is the one meant, however either is spelt."""
    if written.text == ANYBODY:
        return lambda _: True
    wanted = alike(lexicon.agent(written.text))
    if wanted not in map(alike, lexicon.agents):
        raise _no_such("agent", written, lexicon.agents)
    spellings: dict[str, bool] = {}

    def is_wanted(name: str | None) -> bool:
        if name is not None and name not in spellings:
            spellings[name] = alike(lexicon.agent(name)) == wanted
        return name is not None and spellings[name]

    return is_wanted


def _opinion(written: Written, lexicon: Lexicon) -> Callable[[str], bool]:
    if written.detail is None:
        return lambda _: True
    wanted = word_for(written.detail.text, lexicon.opinions)
    if wanted is None:
        raise _no_such("opinion", written.detail, lexicon.opinions)
    return lambda opinion: alike(opinion) == alike(wanted)


def _assignee(written: Written, _lexicon: Lexicon) -> Test:
    wanted = folded(written.text)
    return lambda row: row.assignee is not None and folded(row.assignee) == wanted


def _category(written: Written, lexicon: Lexicon) -> Test:
    """A category, or a part of its name."""
    word = word_for(written.text, lexicon.vocabulary.categories)
    wanted = alike(word or written.text)
    if not any(wanted in alike(category) for category in lexicon.categories):
        raise _no_such("category", written, lexicon.categories)
    return lambda row: any(wanted in alike(category) for category in row.categories)


def _domain(written: Written, lexicon: Lexicon) -> Test:
    """A domain, or one that lies below it."""
    wanted = (word_for(written.text, lexicon.vocabulary.domains) or written.text).casefold().rstrip("/")

    def within(domains: Iterable[str]) -> bool:
        return any(f"{domain.casefold()}/".startswith(f"{wanted}/") for domain in domains)

    if not within(lexicon.domains):
        raise _no_such("domain", written, lexicon.domains)
    return lambda row: within(row.domains)


def _id(written: Written, lexicon: Lexicon) -> Test:
    wanted = written.text.casefold()
    if not is_pattern(wanted) and wanted not in lexicon.ids:
        hint = close_words(written.text, lexicon.ids.values(), "quote it to search for it")
        raise written.wrong(f"no document has the ID {written.text!r}", hint)
    return lambda row: fnmatchcase(row.id.casefold(), wanted)


def _related(written: Written, lexicon: Lexicon) -> Test:
    """Related to an ID, whichever of the two says so; a detail is what the row says or would say."""
    wanted, known = written.text.casefold(), {**lexicon.ids, **lexicon.named}
    if not is_pattern(wanted) and wanted not in known:
        hint = close_words(written.text, known.values())
        raise written.wrong(f"no document has or names the ID {written.text!r}", hint)
    facts, how = lexicon.facts, None
    if written.detail is not None:
        how = word_for(written.detail.text, RELATIONSHIPS)
        if how is None:
            raise _no_such("relationship", written.detail, RELATIONSHIPS)
    return lambda row: any(
        fnmatchcase(other, wanted) and how in {None, relationship}
        for other, relationship in facts.relations.by_id.get(row.id.casefold(), ())
    )


def _file(written: Written, _lexicon: Lexicon) -> Test:
    """Whole components of a path, one after another: ``src``, ``x.py`` or ``src/x.py`` of ``/a/src/x.py``."""
    wanted = [part for part in written.text.casefold().split("/") if part not in {"", "."}]
    if not wanted:
        raise written.wrong(f"file takes a path, not {written.text!r}")

    def within(path: str) -> bool:
        parts = path.casefold().split("/")
        return any(
            all(map(fnmatchcase, parts[first:], wanted)) for first in range(len(parts) - len(wanted) + 1)
        )

    return lambda row: any(map(within, row.files))


def _title(written: Written, _lexicon: Lexicon) -> Test:
    wanted = folded(written.text)
    return lambda row: wanted in folded(row.title)


def _has(written: Written, lexicon: Lexicon) -> Test:
    facet = word_for(written.text, {word: spellings for word, (spellings, _) in FACETS.items()})
    if facet is None:
        hint = close_words(written.text, FACETS)
        raise written.wrong(f"{written.key} takes what a document may state, not {written.text!r}", hint)
    (_, states), facts = FACETS[facet], lexicon.facts
    return lambda row: states(row, facts)


def _no(written: Written, lexicon: Lexicon) -> Test:
    has = _has(written, lexicon)
    return lambda row: not has(row)


def is_pattern(text: str) -> bool:
    """Whether ``*``, ``?`` or ``[`` stand for other characters in a value."""
    return not {"*", "?", "["}.isdisjoint(text)


FACETS: Mapping[str, tuple[tuple[str, ...], Callable[[Row, Facts], bool]]] = {
    "agent": ((), lambda row, _: row.agent is not None),
    "assignee": ((), lambda row, _: row.assignee is not None),
    "batch": ((), lambda row, _: row.batch is not None),
    "category": (("categories",), lambda row, _: bool(row.categories)),
    "checklist": ((), lambda row, _: row.done + row.undone > 0),
    "created": ((), lambda row, _: row.created is not None),
    "domain": (("domains",), lambda row, _: bool(row.domains)),
    "file": (("files", "location", "locations"), lambda row, _: bool(row.files)),
    "related": (
        ("relation", "relations"),
        lambda row, facts: row.id.casefold() in facts.relations.by_id,
    ),
    "resolution": ((), lambda row, _: row.outcome is not None),
    "review": (("reviews", "reviewer", "reviewed-by"), lambda row, _: bool(row.reviews)),
    "severity": ((), lambda row, _: row.severity is not None),
    "status": ((), lambda row, _: row.status is not None),
    "summary": ((), lambda row, _: row.summary is not None),
    "updated": ((), lambda row, _: row.updated is not None),
    "verifier": ((), lambda row, facts: facts.has_verifier(row)),
}
"""What ``has:`` and ``no:`` ask for: the other spellings, and whether a document states it."""


KEYS: Mapping[str, QueryKey] = {
    "id": QueryKey(_id),
    "kind": QueryKey(_is(lambda row: row.kind, lambda _: KINDS)),
    "title": QueryKey(_title),
    "severity": QueryKey(_severity, ordered=True),
    "status": QueryKey(_is(lambda row: row.status, lambda lexicon: lexicon.vocabulary.statuses)),
    "resolution": QueryKey(_is(lambda row: row.outcome, lambda lexicon: lexicon.vocabulary.outcomes)),
    "verdict": QueryKey(_verdict, cost=OF_EVIDENCE),
    "batch": QueryKey(_number(lambda row: row.batch), ordered=True),
    "agent": QueryKey(_agent),
    "assignee": QueryKey(_assignee),
    "domain": QueryKey(_domain),
    "category": QueryKey(_category),
    "file": QueryKey(_file),
    "reviewed-by": QueryKey(_reviewed_by, detailed=True),
    "related": QueryKey(_related, detailed=True),
    "created": QueryKey(_date(lambda row: row.created), ordered=True),
    "updated": QueryKey(_date(lambda row: row.updated), ordered=True),
    "done": QueryKey(_number(lambda row: row.done), ordered=True),
    "undone": QueryKey(_number(lambda row: row.undone), ordered=True),
    "has": QueryKey(_has),
    "no": QueryKey(_no),
}

By = Callable[[Row], Any]
"""What of a row is compared: anything with an order, or None where the document does not state it."""


def _place(get: Get, words: Iterable[str]) -> By:
    """The place of a word in the order of its vocabulary."""
    places = {word: number for number, word in enumerate(words)}
    return lambda row: None if (word := get(row)) is None else places[word]


SORTS: Mapping[str, Callable[[Facts], By]] = {
    "id": lambda _: lambda row: natural(row.id),
    "path": lambda _: lambda row: row.path,
    "title": lambda _: lambda row: row.title.casefold(),
    "severity": lambda _: _place(lambda row: row.severity, Severity),
    "status": lambda _: _place(lambda row: row.status, Status),
    "verdict": lambda facts: _place(facts.verdict, Verdict),
    "batch": lambda _: lambda row: row.batch,
    "agent": lambda _: lambda row: row.agent and row.agent.casefold(),
    "assignee": lambda _: lambda row: row.assignee and row.assignee.casefold(),
    "created": lambda _: lambda row: date_in(row.created),
    "updated": lambda _: lambda row: date_in(row.updated),
    "done": lambda _: lambda row: row.done,
    "undone": lambda _: lambda row: row.undone,
}
"""Severities come from the worst, statuses in the order of a ticket's life, verdicts as documented."""
