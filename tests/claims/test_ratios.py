"""Reading claims about time, and what an interval says of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from finding_tickets.claims.check import parse_ratio
from finding_tickets.claims.language import ExpressionError

VARIANTS = ("found", "fix", "other")
AT = {"n": 4, "k": 2}


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("<= 0.5*found", (Fraction(1, 2),)),
        ("<= found/2", (Fraction(1, 2),)),
        ("< found", (Fraction(1),)),
        (">= 3*found", (Fraction(3),)),
        ("<= 2*found/n", (Fraction(1, 2),)),
        ("<= (1/n + 1/4)*found", (Fraction(1, 2),)),
        ("<= found - 0.25*found", (Fraction(3, 4),)),
        ("<= max(found/n, found/8)", (Fraction(1, 4),)),
        ("<= found*found/(n*found)", (Fraction(1, 4),)),
        ("0.9*found..1.1*found", (Fraction(9, 10), Fraction(11, 10))),
    ],
)
def test_a_claim_is_a_multiple_of_another_time(text: str, edges: tuple[Fraction, ...]) -> None:
    """However it is written, the other variant's name stands for its time, and sweep variables take part."""
    ratio = parse_ratio(text, "fix", VARIANTS)
    assert ("found", edges) == (ratio.reference, ratio.edges(AT))


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    [
        ("<= 0.5*found", 0.3, 0.5, True),
        ("<= 0.5*found", 0.3, 0.51, None),
        ("<= 0.5*found", 0.5, 0.6, None),
        ("<= 0.5*found", 0.51, 0.6, False),
        ("< 0.5*found", 0.3, 0.5, None),
        ("< 0.5*found", 0.5, 0.6, False),
        (">= 2*found", 2.0, 2.5, True),
        (">= 2*found", 1.5, 1.9, False),
        ("0.9*found..1.1*found", 0.95, 1.05, True),
        ("0.9*found..1.1*found", 0.85, 1.05, None),
        # Wider than the range: both ends are outside, and yet the median may be inside.
        ("0.9*found..1.1*found", 0.85, 1.15, None),
        ("0.9*found..1.1*found", 0.2, 0.8, False),
        ("0.9*found..1.1*found", 1.2, 1.3, False),
        ("<= 2*found/n", 0.3, 0.4, True),
        ("<= 2*found/n", 0.6, 0.7, False),
    ],
)
def test_only_a_whole_interval_decides(text: str, low: float, high: float, expected: bool | None) -> None:
    """A claim holds where all of it does, is false where nothing of it is, and is open otherwise."""
    assert expected is parse_ratio(text, "fix", VARIANTS).outcome(low, high, AT)


MULTIPLE = "state a multiple of another variant's time, as in <= 0.5*found"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("<= 0.5", "'<= 0.5' compares with no other variant, and seconds differ on every machine", MULTIPLE),
        ("3", "compares with no other variant", MULTIPLE),
        ("<= 0.5*fund", "compares with no other variant", MULTIPLE),
        ("<= 5 ms", "unexpected 'ms' at column 6", MULTIPLE),
        ("2x", "unexpected 'x' at column 2", MULTIPLE),
        ("<= 0.5*fix", "compares fix with itself", MULTIPLE),
        ("<= max(found, other)", "compares with found and other", "make it several claims"),
        ("<= found + 1", "is no multiple of the time of found", MULTIPLE),
        ("<= n/found", "is no multiple of the time of found", MULTIPLE),
        ("<= found*found", "is no multiple of the time of found", MULTIPLE),
        ("<= found//2", "is no multiple of the time of found", MULTIPLE),
        ("<= log2(found)", "is no multiple of the time of found", MULTIPLE),
        ("0..0.5*found", "is no multiple of the time of found", MULTIPLE),
        ("O(found)", "is a growth class, and times have no law", MULTIPLE),
        ("0.5*found", "is about equal times", "write <= or >=, or a range as 0.9*found..1.1*found"),
        ("!= found", "is about equal times", "write <= or >=, or a range as 0.9*found..1.1*found"),
    ],
)
def test_anything_else_is_no_claim_about_time(text: str, message: str, hint: str) -> None:
    """A time by itself means nothing on the next machine; the hint says what does."""
    with pytest.raises(ExpressionError) as caught:
        parse_ratio(text, "fix", VARIANTS)
    assert (True, hint) == (message in caught.value.message, caught.value.hint)


def test_the_hint_names_a_variant_that_is_there() -> None:
    """A claim about the code as found is compared with its fix."""
    with pytest.raises(ExpressionError) as caught:
        parse_ratio(">= 2", "found", ["found", "fix"])
    assert (caught.value.hint or "").endswith("as in <= 0.5*fix")
