"""Text on a terminal: wide letters, columns, and what is cut."""

from __future__ import annotations

import pytest

from finding_tickets.report.text import LEAST_CUT, aligned, cells, printable


def test_letters_of_all_scripts_are_kept() -> None:
    """What people write shows as it is: other scripts, joined pictures, marks on letters."""
    for text in ("naïve", "e\u0301", "字幕", "שלום", "سلام", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}"):
        assert text == printable(text)
        assert [text] == aligned([(text,)])


@pytest.mark.parametrize("width", [5, 24, 40, 80])
@pytest.mark.parametrize("last", ["", "one two", "x" * 90, "\u7b49\u5f85" * 30, "e\u0301 \u5b57" * 9])
def test_the_last_column_gives_way(width: int, last: str) -> None:
    """Whatever room it is left, no line is wider than that, and the other columns are whole."""
    lines = aligned([("name", "value", last), ("a", "", "")], width=width)
    assert lines[0].startswith("name  value")
    # The first two columns and the gaps take 4 + 2 + 5 + 2; with too little left the last is left out.
    left = width - 13
    assert max(map(cells, lines)) <= max(width, 11)
    if cells(last) > left:
        assert ("\u2026" in lines[0]) is (left >= LEAST_CUT)


def test_columns_stand_where_cells_are_counted() -> None:
    """A letter that takes two cells of a terminal moves the next column by two."""
    first, second = aligned([("\u5b57", "x"), ("abc", "y")])
    # The column has three cells and two blanks behind it.
    assert [5, 5] == [cells(line[:-1]) for line in (first, second)]
