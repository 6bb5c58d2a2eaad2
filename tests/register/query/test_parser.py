"""How a query is read: what binds how tightly, what is an ID, and where it says that something is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from finding_tickets.ground.tokens import DEEPEST_NESTING
from finding_tickets.register.query import LONGEST_QUERY, QueryError, parse
from finding_tickets.register.query.keys import KEYS

if TYPE_CHECKING:
    from tests.register.query.conftest import Words

from tests.register.query.conftest import row

ROWS = [
    row("A-1", status="open", title='a "no" to \\'),
    row("A-2", status="fixed", severity="P0", title="b, (c)=d"),
    row("NOTES", status="in-review", severity="P4", title="loss.py:10", reviews=(("drl", "OBJECT"),)),
]


def meant(words: Words, text: str) -> list[str]:
    """The IDs of the rows that a query means, in its order."""
    facts = words(*ROWS)
    return [each.id for each in parse(text, facts).choose(facts.rows)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", lambda _: True),
        ("  ", lambda _: True),
        ("sort:id", lambda _: True),
        ("a", lambda has: "a" in has),
        ("a b", lambda has: "a" in has and "b" in has),
        ("a AND b", lambda has: "a" in has and "b" in has),
        ("a OR b c", lambda has: "a" in has or ("b" in has and "c" in has)),
        ("a b OR c d", lambda has: has >= {"a", "b"} or has >= {"c", "d"}),
        ("(a OR b) c", lambda has: ("a" in has or "b" in has) and "c" in has),
        ("NOT a b", lambda has: "a" not in has and "b" in has),
        ("-a OR b", lambda has: "a" not in has or "b" in has),
        ("-(a b)", lambda has: not ("a" in has and "b" in has)),
        ("NOT NOT a", lambda has: "a" in has),
        ("NOT -a", lambda has: "a" in has),
        ("( ( a ) )", lambda has: "a" in has),
        ("sort:severity,-updated a OR b sort:ID", lambda has: "a" in has or "b" in has),
    ],
)
def test_what_binds_how_tightly(words: Words, text: str, expected: Callable[[set[str]], bool]) -> None:
    """NOT binds more tightly than AND, AND more tightly than OR: tried on every choice of four words."""
    chosen = [set(some) for size in range(5) for some in combinations("abcd", size)]
    assert 2**4 == len(chosen)
    holds = parse(text, words()).condition.holds
    assert [expected(has) for has in chosen] == [holds(row("A-1", title=" ".join(has))) for has in chosen]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status:open,fixed", ["A-1", "A-2"]),
        ("-status:open,fixed", ["NOTES"]),
        ("severity:>=P1,P4", ["A-2", "NOTES"]),
        ("STATUS:Open", ["A-1"]),
        ("reviewed_by:*=object", ["NOTES"]),
        ('status:"in review"', ["NOTES"]),
        ('title:"b, (c)=d"', ["A-2"]),
        (r'"a \"no\" to \\"', ["A-1"]),
        ('"status:open"', []),
        ("loss.py:10", ["NOTES"]),
        ('"AND" OR "sort:id"', []),
    ],
)
def test_words_and_values(words: Words, text: str, expected: list[str]) -> None:
    """What is in quotation marks is a word as it stands there."""
    assert expected == meant(words, text)


def test_words_that_look_like_something_else(words: Words) -> None:
    """Signs within a word and words that begin as an operator does are searched for, each by itself."""
    for text in ("a-b c_d +e @f x=1", "ANDROID NOTE ORDER"):
        holds = parse(text, words()).condition.holds
        found = text.split()
        assert holds(row("A-1", title=" and ".join(found)))
        assert [False] * len(found) == [holds(row("A-1", title=text.replace(word, ""))) for word in found]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        # The condition is asked before the text, which has to be read, and so is the verdict.
        ("a status:open", []),
        ("a verdict:stale status:fixed", ["verdict"]),
        ("verdict:refuted a OR status:fixed", []),
        ("verdict:stale status:open OR a OR severity:P0", []),
    ],
)
def test_what_is_cheap_is_asked_first(words: Words, text: str, asked: list[str]) -> None:
    """Texts are read and verdicts looked up only where they decide."""
    facts = words()
    parse(text, facts).condition.holds(row("A-2", status="fixed", severity="P0"))
    assert asked == [each.split()[0] for each in facts.asked]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-2 A-1", ["A-2", "A-1"]),
        ("id:A-2,A-1", ["A-2", "A-1"]),
        ("A-1", ["A-1"]),
        ("A-1 A-2 status:fixed", ["A-2"]),
        ("A-1 status:open A-2", []),
        ("A-1 AND A-2", []),
        ("A-1 sort:id A-2", ["A-1", "A-2"]),
        ("A-2 OR A-1", ["A-2", "A-1"]),
        ("A-2 A-1 sort:-id", ["A-2", "A-1"]),
        ("A-2 OR status:open", ["A-1", "A-2"]),
        ("id:A-1 id:A-*", ["A-1"]),
        ("-A-1 A-2", ["A-2"]),
        ("notes", ["NOTES"]),
        ('"A-1"', []),
        ("A-1x", []),
        ("tickets/A-2.md", ["A-2"]),
    ],
)
def test_ids(words: Words, text: str, expected: list[str]) -> None:
    """Side by side they are alternatives and keep their order; quoted they are text."""
    assert expected == meant(words, text)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("statu:open", 1, "no such key as 'statu'"),
        ("a  https://b", 4, "no such key as 'https'"),
        ("status:opn", 8, "no such status as 'opn'"),
        ("status:open,opn", 13, "no such status as 'opn'"),
        ("status:", 8, "status has no value"),
        ("status: open", 8, "status has no value"),
        ("status:open,", 13, "status has no value"),
        ('status:""', 8, "status has no value"),
        ("status:>open", 8, "status has no order"),
        ("severity:>=", 12, "severity has no value"),
        ("status:open=x", 12, "status takes one value"),
        ("reviewed-by:*=", 15, "reviewed-by has no value"),
        ("reviewed-by:*=maybe", 15, "no such opinion as 'maybe'"),
        ("related:A-1=near", 13, "no such relationship as 'near'"),
        ("batch:" + "1" * 5_000, 7, "batch takes a number"),
        ("title:f(x)", 8, "unexpected '('"),
        ('title:"a"b', 10, "unexpected 'b'"),
        ("(a", 1, "a parenthesis without its partner"),
        ("a (b OR (c)", 3, "a parenthesis without its partner"),
        ("a)", 2, "a parenthesis without its partner"),
        ("()", 2, "a condition is missing"),
        ("a OR", 5, "a condition is missing"),
        ("OR a", 1, "a condition is missing"),
        ("a AND OR b", 7, "a condition is missing"),
        ("a AND", 6, "a condition is missing"),
        ("NOT", 4, "a condition is missing"),
        ("NOT OR a", 5, "a condition is missing"),
        ("a - b", 3, "nothing to negate"),
        ("--all", 1, "nothing to negate"),
        ("-", 1, "nothing to negate"),
        ('a "b', 3, "a quotation mark without its partner"),
        ('a ""', 3, "nothing to search for"),
        ("a or b", 3, "'or' is no operator"),
        ("sort:size", 6, "nothing is sorted by 'size'"),
        ("sort:", 6, "nothing is sorted by ''"),
        ("sort:-id,", 10, "nothing is sorted by ''"),
        ("NOT sort:id", 5, "sort: is about the whole list"),
        ("(a sort:id)", 4, "sort: is about the whole list"),
        ("a OR sort:id", 13, "a condition is missing on one side of OR"),
        ("a A-3", 3, "no document has the ID 'A-3'"),
    ],
)
def test_what_cannot_be_read(words: Words, text: str, column: int, reason: str) -> None:
    """The message has the reason, its column from 1 and the query."""
    with pytest.raises(QueryError) as caught:
        parse(text, words(row("A-1")))
    assert column == caught.value.position + 1
    assert reason in caught.value.message
    assert f"at column {column} of {text!r}" in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sverity:P1", "did you mean severity?"),
        ("x:y", f"one of {', '.join([*KEYS, 'sort'])}; quote what is not a key"),
        ("status:opne", "did you mean open?"),
        ("severity:urgent", "one of P0, P1, P2, P3, P4"),
        ("sort:update", "did you mean updated?"),
        ("reviewed-by:*=objekt", "did you mean OBJECT?"),
        ("has:verifer", "did you mean verifier?"),
        ("A-12", "did you mean A-1?"),
        ("SHA-256", "quote it to search for it"),
        ("not a", "write NOT, or quote the word to search for it"),
    ],
)
def test_what_may_have_been_meant(words: Words, text: str, hint: str) -> None:
    """The hint has the words that come close, else what there is, else what to do."""
    with pytest.raises(QueryError) as caught:
        parse(text, words(row("A-1")))
    assert hint == caught.value.hint


@pytest.mark.parametrize("opening", ["(", "-(", "NOT "])
def test_nesting_has_an_end(words: Words, opening: str) -> None:
    """A query that nests deeply is refused before Python's stack would be."""
    closing = ")" if "(" in opening else ""
    deep = opening * 10_000 + "a" + closing * 10_000
    with pytest.raises(QueryError):
        parse(deep[:LONGEST_QUERY], words())
    levels = DEEPEST_NESTING // len(opening.replace(" ", "").replace("NOT", "-"))
    parse(opening * levels + "a" + closing * levels, words())


def test_a_query_has_an_end(words: Words) -> None:
    """One that is too long is refused at once; a long one is read in no time."""
    with pytest.raises(QueryError):
        parse("a " * LONGEST_QUERY, words())
    parse("a OR " * (LONGEST_QUERY // 5 - 1) + "b", words())


def test_any_text_is_a_query_or_an_error(words: Words) -> None:
    """Pieces of the language in any order are read, or refused at a place within the text."""
    pieces = [
        *'()-,:=<>" \\',
        "AND ",
        "OR ",
        "NOT ",
        "status:",
        "open",
        "severity:>=",
        "P1",
        "sort:",
        "id",
        "A-1",
    ]
    generator = random.Random(4)  # noqa: S311 - the same texts each time
    facts = words(row("A-1"))
    wrong = []
    for _ in range(5_000):
        text = "".join(generator.choices(pieces, k=generator.randint(1, 9)))
        try:
            parse(text, facts)
        except QueryError as error:
            wrong.append((error.position, len(text)))
    # Both happen: the test is about neither alone.
    assert 0 < len(wrong) < 5_000
    assert [] == [place for place in wrong if not 0 <= place[0] <= place[1]]
