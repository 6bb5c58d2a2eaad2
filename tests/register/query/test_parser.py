"""How a query is read: what must hold, what is an ID, and where it says that something is wrong."""

from __future__ import annotations

import random

import pytest
from tests.register.query.conftest import Words, row

from finding_tickets.register.query import LONGEST_QUERY, QueryError, parse

ROWS = [
    row("A-1", status="open", title='a "no" to \\'),
    row("A-2", status="fixed", severity="P0", title="b, (c)=d"),
    row("NOTES", status="in-review", severity="P4", title="loss.py:10", reviews=(("drl", "OBJECT"),)),
]


def meant(words: Words, text: str) -> list[str]:
    """The IDs of the rows that a query means, in its order."""
    facts = words(*ROWS)
    return [each.id for each in parse(text, facts).choose(facts.entries)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["A-1", "A-2", "NOTES"]),
        ("  ", ["A-1", "A-2", "NOTES"]),
        ("sort:id", ["A-1", "A-2", "NOTES"]),
        ("a", ["A-1"]),
        ("o a", ["A-1"]),
        ("-a", ["A-2", "NOTES"]),
        ("-a -status:fixed", ["NOTES"]),
        ("\N{MINUS SIGN}status:fixed", ["A-1", "NOTES"]),
        ("status:open,fixed", ["A-1", "A-2"]),
        ("-status:open,fixed", ["NOTES"]),
        ("severity:>=P1,P4", ["A-2", "NOTES"]),
        ("STATUS:Open", ["A-1"]),
        ("reviewed_by:*=object", ["NOTES"]),
        ('status:"in review"', ["NOTES"]),
        ('title:"b, (c)=d"', ["A-2"]),
        ("title:(c)", ["A-2"]),
        (r'"a \"no\" to \\"', ["A-1"]),
        ('"status:open"', []),
        ("loss.py:10", ["NOTES"]),
        ("(c)=d", None),
        ('"OR"', []),
        ("x=1 ANDROID", []),
    ],
)
def test_words_and_conditions(words: Words, text: str, expected: list[str] | None) -> None:
    """All must hold; what is in quotation marks is a word as it stands there."""
    if expected is None:
        with pytest.raises(QueryError):
            meant(words, text)
    else:
        assert expected == meant(words, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-2 A-1", ["A-2", "A-1"]),
        ("id:A-2,A-1", ["A-1", "A-2"]),
        ("A-1", ["A-1"]),
        ("A-1 A-2 status:fixed", ["A-2"]),
        ("A-1 status:open A-2", ["A-1"]),
        ("A-1 sort:id A-2", ["A-1", "A-2"]),
        ("A-2 A-1 sort:-id", ["A-2", "A-1"]),
        ("id:A-1 id:A-*", ["A-1"]),
        ("-A-1 A-2", ["A-2"]),
        ("-A-1", ["A-2", "NOTES"]),
        ("notes", ["NOTES"]),
        ('"A-1"', []),
        ("A-1x", []),
        ("tickets/A-2.md", ["A-2"]),
        ("./tickets/A-2.md", ["A-2"]),
    ],
)
def test_ids(words: Words, text: str, expected: list[str]) -> None:
    """They are alternatives and keep their order; quoted they are text."""
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
        ("severity:>=", 12, "severity has no value"),
        ("batch:" + "1" * 5_000, 7, "batch takes a number"),
        ('a "b', 3, "a quotation mark without its partner"),
        ('""', 1, "nothing to search for"),
        ("sort:when", 6, "nothing is sorted by 'when'"),
        ("status:open OR a", 13, "'OR' is no part of a query"),
        ("a and b", 3, "'and' is no part of a query"),
        ("NOT a", 1, "'NOT' is no part of a query"),
        ("(status:open)", 1, "'(status:open)' is no part of a query"),
        ("a (b c)", 3, "'(b' is no part of a query"),
        ("severity >= P1", 10, "'>=' stands alone"),
        ("a - b", 3, "'-' stands alone"),
    ],
)
def test_errors_have_their_place(words: Words, text: str, column: int, reason: str) -> None:
    """The message begins with what is wrong, and has the column."""
    with pytest.raises(QueryError) as caught:
        parse(text, words(row("A-1")))
    assert caught.value.message.startswith(f"{reason} at column {column} of ") or (
        caught.value.message.startswith(reason) and f" at column {column} of " in caught.value.message
    )


def test_a_query_has_an_end(words: Words) -> None:
    """One that is too long is refused at once; a long one is read in no time."""
    with pytest.raises(QueryError):
        parse("a " * LONGEST_QUERY, words())
    parse("a " * (LONGEST_QUERY // 2), words())


def test_any_text_is_a_query_or_an_error(words: Words) -> None:
    """Pieces of the language in any order are read, or refused at a place within the text."""
    texts = ["OR ", "status:", "open", "severity:>=", "P1", "sort:", "id", "A-1", "updated:<", "2w"]
    pieces = [*'()-,:=<>" \\[', *texts]
    generator = random.Random(4)  # noqa: S311 - the same texts each time
    facts = words(row("A-1"))
    wrong = []
    for _ in range(5_000):
        text = "".join(generator.choices(pieces, k=generator.randint(1, 9)))
        try:
            parse(text, facts).choose(facts.entries)
        except QueryError as error:
            wrong.append((error.position, len(text)))
    # Both happen: the test is about neither alone.
    assert 0 < len(wrong) < 5_000
    assert [] == [place for place in wrong if not 0 <= place[0] <= place[1]]
