"""Evaluating and reading the claims' language."""

from __future__ import annotations

from fractions import Fraction

import pytest

from finding_tickets.claims.language import (
    DEEPEST_NESTING,
    GROWTH,
    ClaimCondition,
    ExpressionError,
    Variable,
    check_variables,
    evaluate,
    parse_condition,
    parse_expression,
    satisfied,
)

AT = {"n": 7, "largest": 1000}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4*n + 2", 30),
        ("2 + 3*4 - 1", 13),
        ("(2 + 3)*4", 20),
        ("20 - 5 - 3", 12),
        ("n/2", Fraction(7, 2)),
        ("n//2*2", 6),
        ("n % 4", 3),
        ("-n + 10", 3),
        ("--n", 7),
        ("max(n, largest, 3)", 1000),
        ("min(1, n)", 1),
        ("ceil(n/2)", 4),
        ("log2(8)", 3),
        ("log2(1/8)", -3),
        ("ceil(log2(n))", 3),
        ("10_000", 10_000),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("10_000.125", Fraction(80_001, 8)),
    ],
)
def test_expressions_are_exact(text: str, expected: Fraction) -> None:
    """Operators bind and divide as in arithmetic, with fractions where integers end."""
    assert expected == evaluate(parse_expression(text), AT)


def test_log2_rounds_away_from_the_powers_of_two() -> None:
    """One above a power of two needs one bit more, even where a float no longer sees the difference."""
    # 2**59 + 1 lies above 2**59, so the next whole logarithm is 60; math.log2 of it is exactly 59.0.
    assert 60 == evaluate(parse_expression(f"ceil(log2({2**59 + 1}))"), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", True),
        ("== n", True),
        ("!= n", False),
        ("<= 6", False),
        ("< 8", True),
        (">= n", True),
        ("> n", False),
        ("1..7", True),
        ("8 .. n + 3", False),
        ("6.5..7.5", True),
        ("<= 6.9", False),
    ],
)
def test_a_measured_value_is_compared_with_a_condition(text: str, expected: bool) -> None:
    """Seven meets exactly the conditions that are true of seven; ranges include both ends."""
    assert expected == satisfied(parse_condition(text), 7, AT)


def test_a_growth_class_is_read() -> None:
    """``O(...)`` is a growth class, not a function."""
    assert ClaimCondition(GROWTH, (Variable("largest"),)) == parse_condition("O(largest)")


def test_digits_of_a_number_may_be_grouped() -> None:
    """Underscores are read over, in growth classes too."""
    assert 1000 == evaluate(parse_expression("1__000_"), AT)
    assert GROWTH == parse_condition("O(1__000*n)").relation


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("O(0_0*n)", 3),
        ("O(0.5*n)", 3),
        ("O(n/d)", 4),
        ("O(n//2)", 4),
        ("O(min(n, d))", 3),
        ("O(n - n)", 5),
        ("O(0*n)", 3),
        ("O(n % d)", 5),
    ],
)
def test_a_growth_class_can_only_grow(text: str, column: int) -> None:
    """What could shrink with its variables is no class, and is pointed at."""
    with pytest.raises(ExpressionError, match=f"at column {column} of"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("n**2", 2, "there are no powers: write n*n"),
        ("n^2", 2, "there are no powers: write n*n"),
        ("=> 3", 1, "write >="),
        ("= 3", 1, "equality is written =="),
        ("1.", 2, "a decimal has digits on both sides, as 0.5; a range is written 1..2"),
        (".5", 1, "a decimal has digits on both sides, as 0.5; a range is written 1..2"),
        ("1.2.3", 4, "a decimal has digits on both sides, as 0.5; a range is written 1..2"),
        ("0." + "0" * 18 + "1", 1, None),
        ("cel(n)", 1, "did you mean 'ceil'? known: max, min, ceil, log2"),
        ("(n + 1", 7, None),
        ("", 1, None),
        ("n m", 3, None),
        ("10,000", 3, None),
        ("ceil(n, 2)", 7, None),
        ("4 KiB", 3, None),
        ("n; import os", 2, None),
        ("9" * 19, 1, None),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, column: int, hint: str | None) -> None:
    """An error names the column and, where the mistake is a common one, what to write instead."""
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text)
    assert (f"column {column}" in caught.value.message, caught.value.hint) == (True, hint)


@pytest.mark.parametrize("text", ["(" * 500, "-" * 300 + "n", "(" * (DEEPEST_NESTING + 1) + "n", "n+" * 400])
def test_a_text_cannot_exhaust_the_reader(text: str) -> None:
    """Deep nesting and endless texts are refused with a message."""
    with pytest.raises(ExpressionError, match=r"nests more than|characters"):
        parse_condition(text)


def test_a_long_sum_is_not_deep() -> None:
    """Sixty terms beside each other nest no deeper than one."""
    assert 7 * 60 == evaluate(parse_expression("+".join(["(n)"] * 60)), AT)


def test_an_unknown_variable_names_the_known_ones() -> None:
    """A misspelt variable is pointed at, with what it may have meant."""
    with pytest.raises(ExpressionError, match="unknown variable 'lagest' at column 6") as caught:
        check_variables(parse_condition("<= 5*lagest"), AT)
    assert "did you mean 'largest'? known: n, largest" == caught.value.hint


@pytest.mark.parametrize("text", ["n/(n - 7)", "n // 0", "n % 0", "log2(n - 7)"])
def test_undefined_values_are_errors(text: str) -> None:
    """A division by zero and a logarithm of zero have no value."""
    with pytest.raises(ExpressionError):
        evaluate(parse_expression(text), AT)
