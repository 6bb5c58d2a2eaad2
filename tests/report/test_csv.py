"""Reports as comma-separated values: read back as they are, and no formula in any spreadsheet."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from tests.report.conftest import ROWS, claim, row

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.rows import CSV_COLUMNS, ReportRow, csv_cell, write_csv


def read(text: str) -> list[dict[str, str]]:
    """The rows of a text, as Python's reader has them."""
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_a_row_for_each_document() -> None:
    """What is not stated is empty, and what has commas or quotes is one cell."""
    rows = [row("T-1", 'a, "b"', verdict=Verdict.VERIFIED, claims=[claim()]), row("T-2", status=None)]
    first, second = read("".join(write_csv(rows)))
    assert list(CSV_COLUMNS) == list(first)
    assert ('a, "b"', "verified", "open", 'a, "b": a, "b"') == tuple(
        first[name] for name in ("title", "verdict", "disposition", "laws")
    )
    assert ("T-2", "", "", "tickets/T-2.md") == tuple(
        second[name] for name in ("id", "status", "batch", "path")
    )


def test_a_cell_is_no_longer_than_spreadsheets_take() -> None:
    """Of a longer text, 32 767 characters are there, the last of which says that it goes on."""
    (read_row,) = read("".join(write_csv([row("T-1", "=" + "x" * 200_000)])))
    assert "'=" + "x" * (32_767 - 3) + "\u2026" == read_row["title"]
    assert "x" * 32_767 == csv_cell("x" * 32_767)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("\t =1+1", "'=1+1"),
        ("@x", "'@x"),
        ("\uff0bx", "'\uff0bx"),
        ("a;=1", "a;'=1"),
        ("a; -1", "a;' -1"),
        ("2*params -> 1", "2*params -> 1"),
        ("a=b", "a=b"),
        (4, "4"),
        (None, ""),
        ("a\x00b", "a?b"),
    ],
)
def test_a_formula_becomes_text(value: object, expected: str) -> None:
    """An apostrophe stands before what a spreadsheet would calculate, also behind a semicolon."""
    assert expected == csv_cell(value)


@given(ROWS)
def test_any_text_is_read_back_on_its_row(rows: list[ReportRow]) -> None:
    """Each document is one line with as many cells as the header, and no cell begins a formula."""
    text = "".join(write_csv(rows))
    assert len(rows) + 1 == text.count("\n")
    for cells in csv.reader(io.StringIO(text, newline=""), strict=True):
        assert len(CSV_COLUMNS) == len(cells)
        assert not any(re.match("[=+\\-@\\s\uff0b\uff0d\uff1d\uff20]", each) for each in cells)
