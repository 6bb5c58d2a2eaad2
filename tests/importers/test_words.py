"""Foreign text in Markdown: it says what it said, and does nothing."""

from __future__ import annotations

import pyromark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_tickets.importers.drafts import CUT, UNPRINTABLE, paragraphs, words

LONG = 10_000
OPTIONS = (
    pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_MATH
)
HOSTILE = st.text(
    alphabet="aB1 `\\*_[]()<>&|~$#!@{}^-+=:;/\"'.\n\r\t\x00\x1b\u2028\u202e\ud800é", max_size=60
)
SILENT = {"Paragraph", "Text", "Code", "SoftBreak"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, with (brackets).", "plain text, with (brackets)."),
        ("`os` imported", "`os` imported"),
        ("Comparison to `None` should be `cond is None`", "Comparison to `None` should be `cond is None`"),
        ("a_b and *c*, '<d>'.", "`a_b` and `*c*`, '`<d>`'."),
        ("a\n\n b", "a b"),
        ("stray ` backtick", "stray backtick"),
        ("`a``b`", "`a` `b`"),
        ("- item", "`-` item"),
        ("1. item", "`1`. item"),
        ("a - b", "a - b"),
        ("Line too long (120 > 100)", "Line too long (120 > 100)"),
        ("a <= b & c", "a <= b & c"),
        ("> quoted", "`>` quoted"),
        ("` ` > quoted", "`>` quoted"),
        ("a <b> c", "a `<b>` c"),
        ("=", "`=`"),
        ("[x](javascript:alert(1))", "`[x](javascript:alert(1))`"),
        ("a\x00b\u202e", f"a{UNPRINTABLE}b{UNPRINTABLE}"),
        ("", ""),
        ("```", ""),
    ],
)
def test_words_with_markup_become_code(text: str, expected: str) -> None:
    """Everything stays readable; what would be markup stands in backticks."""
    assert expected == words(text, LONG)


def test_long_text_is_cut() -> None:
    """What is left out is marked, also where the text has no gap."""
    assert f"abc{CUT}" == words("abcdef", 3)
    assert f"abc{CUT}" == words("abc def", 4)
    assert "abc" == words("abc", 3)
    assert f"a\n\nb{CUT}" == paragraphs("a\r\n\r\n\r\nb\nc", 8)


def kinds(text: str) -> set[str]:
    """The kinds of everything that a CommonMark parser sees in a text."""
    seen: set[str] = set()
    for event in pyromark.events(text, options=OPTIONS):
        for inner in event.values() if isinstance(event, dict) and {"Start", "End"} & set(event) else [event]:
            seen |= set(inner) if isinstance(inner, dict) else {str(inner)}
    return seen


@given(HOSTILE)
def test_text_is_nothing_but_text(text: str) -> None:
    """A parser finds paragraphs, text and code in it: no HTML, no link, no list, no table, no emphasis."""
    assert kinds(paragraphs(text, LONG)) <= SILENT
    assert kinds(words(text, LONG)) <= SILENT - {"SoftBreak"}


@given(HOSTILE)
def test_nothing_gets_lost(text: str) -> None:
    """Without backticks and white space, all that can be printed is still there, in its order."""
    kept = "".join(char if char.isprintable() else UNPRINTABLE for char in "".join(text.split()))
    assert kept.replace("`", "") == "".join(words(text, LONG).split()).replace("`", "")
