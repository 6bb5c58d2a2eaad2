r"""Choose documents by a query: `status:open severity:>=P1 -domain:simic "waits for" sort:-updated`.

A query is words and conditions, which must all hold. A condition is `key:value`, or `key:value,value` for any
of several values. A minus in front of a word or a condition negates it. IDs are alternatives, for no document
has two. Quotation marks make one word of what is in them; `\"` is one of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fnmatch import translate
from functools import partial
from typing import Any

from finding_tickets.errors import UsageError
from finding_tickets.ground import MINUS
from finding_tickets.model.vocabulary import (
    Severity,
    Status,
    Verdict,
    Words,
    word_for,
)
from finding_tickets.register.entries import Entry, natural
from finding_tickets.register.load import Register, folded

LONGEST_QUERY = 10_000
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OTHER_WAY = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "": ">=", "=": "="}
DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
KEYS = (
    "id", "kind", "title", "severity", "status", "resolution", "verdict", "batch", "agent", "assignee",
    "domain", "category", "file", "reviewed-by", "related", "created", "updated", "done", "undone", "has",
    "no",
)  # fmt: skip
FIELDS = (
    "agent", "assignee", "batch", "category", "checklist", "created", "domain", "file", "related",
    "resolution", "review", "severity", "status", "summary", "updated", "verifier",
)  # fmt: skip
SORTS = (
    "id", "path", "title", "severity", "status", "verdict", "batch", "agent", "assignee", "created",
    "updated", "done", "undone",
)  # fmt: skip
NUMBERS, DATES = {"batch", "done", "undone"}, {"created", "updated"}
ORDERED = {"severity", *NUMBERS, *DATES}
# What a value of the query stands for, where that is not all of a document's value.
PATTERNS = {"title": "*{}*", "category": "*{}*", "domain": "/{}/*", "file": "*/{}/*"}
DETAILED = {"reviewed-by", "related"}
ANYTHING = {"title", "assignee", "file"}
# What others call a key; queries name the right one.
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
WORDS: Mapping[str, Words] = {
    "kind": {"finding": ("ticket",), "review": ()},
    "verdict": {verdict.value: () for verdict in Verdict},
}
# The words of the register that a value may be a spelling of.
VOCABULARY = {
    "severity": "severities",
    "status": "statuses",
    "resolution": "outcomes",
    "domain": "domains",
    "category": "categories",
    "agent": "known_agents",
    "reviewed-by": "known_agents",
}
RANKS: Mapping[str, int] = {
    word: rank for rank, word in enumerate((*Severity, *Status, *Verdict))
}
GONE = {
    "or": "OR is gone: write several values with commas, as in status:open,investigating, or ask twice",
    "and": "all conditions of a query must hold: leave it out",
    "not": "write a minus in front of what is not meant, as in -status:open",
    "(": "parentheses are gone: all conditions must hold; quote what is to be searched for",
}

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TERM = re.compile(
    rf'\s*(?P<minus>[-{MINUS}](?=[^\s-]))?(?P<key>[A-Za-z][A-Za-z_-]*:)?(?P<rest>(?:{_QUOTED}|[^\s"])*)',
    re.DOTALL,
)
_VALUE = re.compile(
    rf'(?P<sign>>=|<=|[<>=])?(?P<text>(?:{_QUOTED}|[^",])*)(?:,|\Z)', re.DOTALL
)
_IN_QUOTES = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NOISE = re.compile(r"[^\w*?=\[\]]+|_")
_NUMBER = re.compile(r"[0-9]{1,18}")
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_AGE = re.compile(r"(?P<number>\d{1,3})(?P<unit>[dwmy])", re.IGNORECASE)
# What people write who know another tool's queries; it is named with the right form, and not searched for.
_COMPARISON = re.compile(
    r"(?P<key>[a-z][a-z_-]*)(?P<sign>!=|==?|[<>]=?)(?P<value>.*)", re.IGNORECASE
)


class QueryError(UsageError):
    """A query that cannot be understood; ``position`` counts its characters from 0."""

    def __init__(
        self, message: str, query: str, position: int, hint: str | None = None
    ) -> None:
        super().__init__(f"{message} at column {position + 1} of {query!r}", hint=hint)
        self.position = position


@dataclass
class Query:
    """A parsed query.

    ``conditions`` say what each of them costs and whether it holds for a row. ``ids`` are the IDs of
    named documents, in lower case. ``sorting`` has the most important key first, each with whether it sorts
    backwards.
    """

    register: Register
    conditions: list[tuple[int, Callable[[Entry], bool]]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    sorting: list[tuple[str, bool]] = field(default_factory=list)

    def choose(self, rows: Iterable[Entry]) -> list[Entry]:
        """Return the rows that are meant, in the order given unless the query asks for another.

        Rows of a query that names nothing but IDs come in the order in which it names them. Rows that do not
        state what they are sorted by come last either way.
        """
        # What takes reading a file is asked last.
        conditions = [
            holds for _, holds in sorted(self.conditions, key=lambda each: each[0])
        ]
        chosen = []
        for row in rows:
            if self.ids and row.id.casefold() not in self.ids:
                continue
            if all(holds(row) for holds in conditions):
                chosen.append(row)
        if self.ids and not conditions:
            chosen.sort(key=lambda row: self.ids.index(row.id.casefold()))
        # Python's sort is stable: sorted by the least important key first, rows keep that order among equals.
        for name, backwards in reversed(self.sorting):
            keys = {row.path: sort_key(name, row, self.register) for row in chosen}
            stated = [row for row in chosen if keys[row.path] is not None]
            stated.sort(key=lambda row: keys[row.path], reverse=backwards)
            chosen = stated + [row for row in chosen if keys[row.path] is None]
        return chosen


def select(text: str, register: Register) -> list[Entry]:
    """Return the rows of a register that a query means today. Raise as ``parse`` does."""
    return parse(text, register).choose(register.entries)


def parse(text: str, register: Register) -> Query:
    """Return the query that ``text`` states; without any word it means every document.

    Raises:
        QueryError: It cannot be read, or has a key or a value that does not exist.
    """
    if len(text) > LONGEST_QUERY:
        raise QueryError(
            f"more than {LONGEST_QUERY} characters", f"{text[:40]}...", LONGEST_QUERY
        )
    query, at = Query(register), 0
    while (term := _TERM.match(text, at)) and term[0].strip():
        at, start = term.end(), term.end() - len(term[0].lstrip())
        word, is_quoted = _unquoted(term["rest"]), '"' in term["rest"]
        if term["key"] and term["key"].lower() == "sort:":
            query.sorting += _sorting(text, term)
            continue
        if not term["key"] and not is_quoted:
            _refuse(word, text, start)
            # A shell completes the names of files.
            word = register.ids.get(word.removeprefix("./"), word)
        if term["key"]:
            cost, holds = _condition(text, term, register)
        elif not is_quoted and register.is_id(word):
            cost, holds = 0, _holds("id", "", word, register, text, start)
            if not term["minus"]:
                query.ids.append(word.casefold())
                continue
        else:
            wanted = folded(word)
            if not wanted:
                raise QueryError("nothing to search for", text, start)
            cost, holds = 2, partial(_has_text, register, wanted)
        query.conditions.append(
            (cost, partial(_fails, holds) if term["minus"] else holds)
        )
    if text[at:].strip():
        raise QueryError(
            "a quotation mark without its partner", text, text.find('"', at)
        )
    return query


def _fails(holds: Callable[[Entry], bool], row: Entry) -> bool:
    return not holds(row)


def _has_text(register: Register, wanted: str, row: Entry) -> bool:
    return wanted in register.text(row)


def _refuse(word: str, text: str, position: int) -> None:
    """Raise for a word that no query has any more, or that is a condition in another tool's form."""
    is_group = word.startswith(("(", ")")) or (word.endswith(")") and "(" not in word)
    gone = GONE.get(
        "("
        if is_group
        else word.lower()
        if word in {word.lower(), word.upper()}
        else ""
    )
    if gone:
        raise QueryError(f"{word!r} is no part of a query", text, position, gone)
    compared = _COMPARISON.fullmatch(word)
    key = compared["key"].lower().replace("_", "-") if compared else ""
    key = SYNONYMS.get(key, key)
    if compared and key in KEYS:
        sign = compared["sign"].strip("=!") and compared["sign"]
        right = f"{'-' if compared['sign'] == '!=' else ''}{key}:{sign}{compared['value'] or 'VALUE'}"
        raise QueryError(f"{word!r} is no condition", text, position, f"write {right}")
    if word and not word.strip(":=!<>-"):
        hint = "write a condition without spaces, such as severity:>=P1"
        raise QueryError(f"{word!r} stands alone", text, position, hint)


def _sorting(text: str, term: re.Match[str]) -> list[tuple[str, bool]]:
    sorting = []
    for part in term["rest"].lower().split(","):
        name = part.removeprefix("-")
        if name not in SORTS:
            hint = close_words(name, SORTS)
            raise QueryError(
                f"nothing is sorted by {name!r}", text, term.start("rest"), hint
            )
        sorting.append((name, part.startswith("-")))
    return sorting


def _condition(
    text: str, term: re.Match[str], register: Register
) -> tuple[int, Callable[[Entry], bool]]:
    """Return what a condition of a query costs, and whether it holds for a row."""
    name = term["key"][:-1].lower().replace("_", "-")
    if name not in KEYS:
        keys = [*KEYS, "sort"]
        hint = close_words(
            name, keys, f"one of {', '.join(keys)}; quote what is not a key"
        )
        if name in SYNONYMS:
            hint = f"write {SYNONYMS[name]}:{term['rest'] or 'VALUE'}"
        raise QueryError(f"no such key as {name!r}", text, term.start("key"), hint)
    tests, at = [], term.start("rest")
    while at <= term.end() and (value := _VALUE.match(text, at, term.end())):
        wanted = _unquoted(value["text"]).strip()
        if not wanted:
            hint = f"write {name}:VALUE without a space"
            raise QueryError(f"{name} has no value", text, value.start("text"), hint)
        tests.append(_holds(name, value["sign"] or "", wanted, register, text, at))
        at = value.end() if value[0].endswith(",") else term.end() + 1
    return int(name == "verdict"), lambda row: any(test(row) for test in tests)


def _holds(
    name: str, sign: str, wanted: str, register: Register, text: str, position: int
) -> Callable[[Entry], bool]:
    """Return whether a condition with one value holds for a row.

    Raises:
        QueryError: The key does not take the value, or nothing has it.
    """
    if sign not in {"", "="} and name not in ORDERED:
        raise QueryError(
            f"{name} has no order that {sign!r} could mean", text, position
        )
    if name in {"has", "no"}:
        what = wanted.lower()
        if what not in FIELDS:
            raise QueryError(
                f"no such field as {wanted!r}",
                text,
                position,
                close_words(wanted, FIELDS),
            )
        return lambda row: bool(values_of(what, row, register)) is (name == "has")
    if name in NUMBERS | DATES:
        passes = (
            _number_test(sign, wanted)
            if name in NUMBERS
            else date_test(sign, wanted, register.today)
        )
        if passes is None:
            what = (
                "a number"
                if name in NUMBERS
                else "a date or an age such as 2025-01-31, 2025-01 or <2w"
            )
            raise QueryError(f"{name} takes {what}, not {wanted!r}", text, position)
        return lambda row: any(
            passes(value) for value in values_of(name, row, register)
        )
    # Of ``drl=OBJECT`` the reviewer must be known; what was said is a matter of the rows.
    first = wanted.partition("=")[0] if name in DETAILED else wanted
    word = word_for(first, _words(name, register)) or first
    if sign not in {"", "="} and word in RANKS:
        # One severity is greater the worse it is, and the worst one ranks first.
        return lambda row: (
            row.severity is not None and COMPARE[sign](RANKS[word], RANKS[row.severity])
        )
    if name not in ANYTHING:
        known = dict.fromkeys(_words(name, register))
        for row in register.entries if name != "verdict" else ():
            for value in values_of(name, row, register):
                known[value.partition("=")[0] if name in DETAILED else value] = None
        if not any(map(_matcher(name, word), known)):
            hint = close_words(
                first, known, "quote it to search for it" if name == "id" else None
            )
            what = (
                f"no document has the ID {first!r}"
                if name == "id"
                else f"no such {name} as {first!r}"
            )
            raise QueryError(what, text, position, hint)
    if name in DETAILED:
        word += wanted[len(first) :] or "=*"
    matches = _matcher(name, word)
    return lambda row: any(map(matches, values_of(name, row, register)))


def _words(name: str, register: Register) -> Words:
    """Return the words that a value of a key may be a spelling of."""
    if name not in VOCABULARY:
        return WORDS.get(name, {})
    words: Words = getattr(register.config.vocabulary, VOCABULARY[name])
    return words


def _matcher(name: str, wanted: str) -> Callable[[str], bool]:
    """Return whether a value is the one that is wanted, in any case and spelling."""
    is_path = name in {"file", "domain"}

    def plain(text: str) -> str:
        if is_path:
            return text.casefold().removeprefix("./").strip("/")
        return _NOISE.sub("", text.casefold()) or folded(text)

    pattern = re.compile(translate(PATTERNS.get(name, "{}").format(plain(wanted))))
    slash = "/" if is_path else ""
    return lambda value: pattern.match(f"{slash}{plain(value)}{slash}") is not None


def values_of(name: str, row: Entry, register: Register) -> Sequence[Any]:
    """Return what a row states of a field: nothing, one value or several."""
    match name:
        case "verdict":
            return [register.measured(row).verdict]
        case "related":
            relations = register.relations.by_id.get(row.id.casefold(), ())
            return [f"{other}={how}" for other, how in relations]
        case "reviewed-by" | "review":
            return [f"{who or '?'}={said}" for who, said in row.reviews]
        case "checklist":
            return range(row.done + row.undone)
        case "verifier":
            return [row.id] if register.has_verifier(row) else []
    many = {"category": row.categories, "domain": row.domains, "file": row.files}
    if name in many:
        return many[name]
    value = getattr(row, "outcome" if name == "resolution" else name)
    return [] if value is None else [value]


def sort_key(name: str, row: Entry, register: Register) -> Any:
    """Return what a row is sorted by; None where it does not state that.

    Severities come from the worst, statuses in the order of a ticket's life, verdicts as documented.
    """
    values = values_of(name, row, register)
    if not values:
        return None
    if name == "id":
        return natural(row.id)
    if name in DATES:
        return date_in(values[0])
    if name in {"severity", "status", "verdict"}:
        return RANKS.get(values[0])
    return values[0].casefold() if isinstance(values[0], str) else values[0]


def date_in(text: str | None) -> date | None:
    """Return the first day that a text names as YYYY-MM-DD, if it is one of the calendar."""
    match = _DAY.search(text or "")
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def date_test(sign: str, value: str, today: date) -> Callable[[str], bool] | None:
    """Return whether a text names a day in a relation to ``value``; None if it is neither a date nor an age.

    A month or a year is all of its days. An age is compared with the age of the day: ``<2w`` is less than two
    weeks ago, and so is ``2w`` or exactly that long.
    """
    if value.casefold() == "today":
        value = today.isoformat()
    elif age := _AGE.fullmatch(value):
        sign = OTHER_WAY[sign]
        value = (
            today - timedelta(int(age["number"]) * DAYS[age["unit"].lower()])
        ).isoformat()
    try:
        # The calendar decides whether there is such a month or day.
        date.fromisoformat(f"{value}-01-01"[: len("YYYY-MM-DD")])
    except ValueError:
        return None
    if not _DATE.fullmatch(value):
        return None
    compare = COMPARE[sign]
    # As text: after a month is after its last day, and up to a month is up to that day.
    return lambda text: (
        (day := date_in(text)) is not None
        and compare(day.isoformat()[: len(value)], value)
    )


def _number_test(sign: str, value: str) -> Callable[[int], bool] | None:
    if not _NUMBER.fullmatch(value):
        return None
    wanted, compare = int(value), COMPARE[sign]
    return lambda number: compare(number, wanted)


def _unquoted(word: str) -> str:
    """Return a word without its quotation marks."""
    return _IN_QUOTES.sub(lambda quoted: re.sub(r'\\(["\\])', r"\1", quoted[1]), word)


def close_words(
    text: str, words: Iterable[str], otherwise: str | None = None
) -> str | None:
    """Return the words that resemble ``text``, else ``otherwise``, else all words if they are few."""
    from difflib import get_close_matches

    spelt = {word.casefold(): word for word in words}
    close = get_close_matches(text.casefold(), spelt, n=3, cutoff=0.75)
    if close:
        return f"did you mean {' or '.join(spelt[word] for word in close)}?"
    return otherwise or (
        f"one of {', '.join(spelt.values())}" if 0 < len(spelt) <= 20 else None
    )
