"""The tokenizer of the small languages."""

from __future__ import annotations

import re

from finding_tickets.ground.tokens import END, UNKNOWN, Token, Tokens

SUM = re.compile(r"\s*(?:(?P<number>\d+)|(?P<symbol>\+\+|[+-]))")
SIGN = re.compile(r"(?P<symbol>-)")


def test_tokens_come_in_their_order_with_kind_and_position() -> None:
    """White space is passed over, and the longest symbol is one token."""
    tokens = Tokens(" 12 ++ 3", SUM)
    assert [tokens.take() for _ in range(4)] == [
        Token("number", "12", 1),
        Token("symbol", "++", 4),
        Token("number", "3", 7),
        Token(END, "", 8),
    ]


def test_only_an_expected_token_is_accepted() -> None:
    """What is not accepted stays the next token."""
    tokens = Tokens("1 - 2", SUM)
    assert tokens.accept("2") is None
    assert tokens.accept("1", "2") == Token("number", "1", 0)
    assert tokens.peek() == tokens.accept("-", "+") == Token("symbol", "-", 2)


def test_a_character_that_begins_no_token_is_not_passed() -> None:
    """It is named with its position, as often as it is asked for."""
    tokens = Tokens("  ?1", SUM)
    assert tokens.take() == tokens.take() == Token(UNKNOWN, "?", 2)
    assert tokens.accept("?") is None


def test_another_pattern_reads_the_same_text_in_another_way() -> None:
    """One that does not begin with white space sees whether there is any."""
    tokens = Tokens("1 -", SUM)
    tokens.take()
    assert tokens.peek(SIGN).kind == UNKNOWN
    assert tokens.peek() == Token("symbol", "-", 2)
