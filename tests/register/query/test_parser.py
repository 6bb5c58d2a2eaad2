"""How a query is read: what binds how tightly, what is an ID, and where it says that something is wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from finding_tickets.ground.tokens import DEEPEST_NESTING
from finding_tickets.register.query import QueryError, parse
from finding_tickets.register.query.parser import LONGEST_QUERY
from finding_tickets.register.query.tree import All, Any, Condition, Node, Not, Sort, TextSearch

if TYPE_CHECKING:
    from tests.register.query.conftest import Words

from tests.register.query.conftest import row


def shape(node: Node) -> str:
    """A tree with all of its parentheses."""
    match node:
        case All(parts):
            return f"({' AND '.join(map(shape, parts))})"
        case Any(parts):
            return f"({' OR '.join(map(shape, parts))})"
        case Not(part):
            return f"NOT {shape(part)}"
        case Condition(key, relation, value, detail):
            return f"{key}:{relation}{value}{f'={detail}' if detail else ''}"
        case TextSearch(words):
            return repr(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "()"),
        ("  ", "()"),
        ("sort:id", "()"),
        ("a", "'a'"),
        ("a b", "('a' AND 'b')"),
        ("a AND b", "('a' AND 'b')"),
        ("a OR b c", "('a' OR ('b' AND 'c'))"),
        ("a b OR c d", "(('a' AND 'b') OR ('c' AND 'd'))"),
        ("(a OR b) c", "(('a' OR 'b') AND 'c')"),
        ("NOT a b", "(NOT 'a' AND 'b')"),
        ("-a OR b", "(NOT 'a' OR 'b')"),
        ("-(a b)", "NOT ('a' AND 'b')"),
        ("NOT NOT a", "NOT NOT 'a'"),
        ("NOT -a", "NOT NOT 'a'"),
        ("( ( a ) )", "'a'"),
        ("status:open,fixed", "(status:open OR status:fixed)"),
        ("-status:open,fixed", "NOT (status:open OR status:fixed)"),
        ("severity:>=P1,P4", "(severity:>=P1 OR severity:P4)"),
        ("STATUS:Open", "status:Open"),
        ("reviewed_by:*=object", "reviewed-by:*=object"),
        ('status:"in review"', "status:in review"),
        ('title:"a, (b)=c"', "title:a, (b)=c"),
        ('"AND" "status:open"', "('AND' AND 'status:open')"),
        (r'"say \"no\" to \\"', "'say \"no\" to \\\\'"),
        ("a-b c_d +e @f x=1", "('a-b' AND 'c_d' AND '+e' AND '@f' AND 'x=1')"),
        ("ANDROID NOTE ORDER", "('ANDROID' AND 'NOTE' AND 'ORDER')"),
        ("loss.py:10", "'loss.py:10'"),
        # The condition is asked before the text, which has to be read.
        ("a status:open", "(status:open AND 'a')"),
        (
            "verdict:stale status:open OR a OR severity:P0",
            "(severity:P0 OR (status:open AND verdict:stale) OR 'a')",
        ),
    ],
)
def test_what_a_query_states(words: Words, text: str, expected: str) -> None:
    """NOT binds more tightly than AND, AND more tightly than OR, and the cheapest part comes first."""
    assert expected == shape(parse(text, words()).tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A-1", "id:A-1"),
        ("a-2 A-1", "(id:a-2 OR id:A-1)"),
        ("A-1 A-2 status:open", "((id:A-1 OR id:A-2) AND status:open)"),
        ("A-1 status:open A-2", "(id:A-1 AND status:open AND id:A-2)"),
        ("A-1 AND A-2", "(id:A-1 AND id:A-2)"),
        ("A-1 sort:id A-2", "(id:A-1 OR id:A-2)"),
        ("id:A-1 id:A-*", "(id:A-1 AND id:A-*)"),
        ("-A-1 A-2", "(NOT id:A-1 AND id:A-2)"),
        ("notes", "id:notes"),
        ('"A-1"', "'A-1'"),
        ("A-1x", "'A-1x'"),
    ],
)
def test_ids(words: Words, text: str, expected: str) -> None:
    """Side by side they are alternatives; a document may have an ID of another form; quoted it is text."""
    assert expected == shape(parse(text, words(row("A-1"), row("A-2"), row("NOTES"))).tree)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("A-2 a-1", ("a-2", "a-1")),
        ("id:A-2,A-1", ("a-2", "a-1")),
        ("A-1", ("a-1",)),
        ("A-1 status:open", ()),
        ("A-1 OR status:open", ()),
        ("id:A-*", ()),
        ("", ()),
    ],
)
def test_a_query_of_nothing_but_ids(words: Words, text: str, named: tuple[str, ...]) -> None:
    """It keeps their order."""
    assert named == parse(text, words(row("A-1"), row("A-2"))).named


def test_sorting(words: Words) -> None:
    """Keys add up, the first is the most important, and they may stand anywhere outside of conditions."""
    query = parse("sort:severity,-updated a OR b sort:ID", words())
    assert (Sort("severity", False), Sort("updated", True), Sort("id", False)) == query.sorting
    assert "('a' OR 'b')" == shape(query.tree)


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
        ("x:y", "quote what is not a key"),
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
    lexicon = words(row("A-1"))
    wrong = []
    for _ in range(5_000):
        text = "".join(generator.choices(pieces, k=generator.randint(1, 9)))
        try:
            parse(text, lexicon)
        except QueryError as error:
            wrong.append((error.position, len(text)))
    # Both happen: the test is about neither alone.
    assert 0 < len(wrong) < 5_000
    assert [] == [place for place in wrong if not 0 <= place[0] <= place[1]]
