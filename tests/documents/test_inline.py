"""Text is freed of its markup without losing what stands in code."""

from __future__ import annotations

import pytest

from finding_tickets.documents.source import code_spans, plain


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("`P2`", "P2"),
        ("**Ticket ID**", "Ticket ID"),
        ("**`P2`** (was `P1`)", "P2 (was P1)"),
        ("`f(**kwargs)` and `__init__`", "f(**kwargs) and __init__"),
        ("two\n  lines", "two lines"),
        (r"a \| b", "a | b"),
        ("``a ` b``", "a ` b"),
        ("an unclosed ` tick", "an unclosed tick"),
        ("", ""),
    ],
)
def test_plain(raw: str, expected: str) -> None:
    """Marks go, and what they mark stays."""
    assert expected == plain(raw)


def test_code_spans() -> None:
    """A run of backticks is closed by the next run of the same length."""
    data = b"x `a` ``b ` c`` `d"
    assert [b"a", b"b ` c"] == [data[start:end] for start, end in code_spans(data, 0, len(data))]


def test_code_spans_of_a_part() -> None:
    """Only backticks in the given range count."""
    assert [(5, 6)] == code_spans(b"`a` `b` `c`", 4, 7)


def test_backticks_without_a_partner_take_linear_time() -> None:
    """A text of runs of ever different length has no code span; a quadratic scan would take minutes."""
    data = b" ".join(b"`" * length for length in range(1, 3000))
    assert [] == code_spans(data, 0, len(data))
