"""Locations: files, lines and symbols, however they are paired."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding

Place = tuple[str | None, list[tuple[int, int]], str | None]


def section(files: str, lines: str = "", symbol: str = "") -> str:
    """A location section; files stand on line 9, lines on 10, the symbol on 11."""
    rows = {"File(s)": files, "Line(s)": lines, "Function/Class": symbol}
    table = "".join(f"| **{name}** | {value} |\n" for name, value in rows.items())
    return f"## Location\n\n| Field | Value |\n|-------|-------|\n{table}"


def places(finding: Finding, text: str) -> list[Place]:
    """Every location as file, lines and symbol."""
    return [
        (place.file, [(lines.first, lines.last) for lines in place.lines], place.symbol)
        for place in finding(text).ticket.locations
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("`24`", [(24, 24)]),
        ("286-294", [(286, 294)]),
        ("10\u201320", [(10, 20)]),
        ("`177-178, 189-190`", [(177, 178), (189, 190)]),
        ("L10-L20", [(10, 20)]),
        ("~120", [(120, 120)]),
        ("a.py:5-6", [(5, 6)]),
        ("Multiple", []),
        ("Entire file", []),
        ("(throughout)", []),
        ("~50 (definition), 120-130 (usage)", [(50, 50), (120, 130)]),
        ("12 (and 4 other calls)", [(12, 12)]),
        ("the loop (lines 10-20, 30)", [(10, 20), (30, 30)]),
        ("45, 50, and 60-65", [(45, 45), (50, 50), (60, 65)]),
        ("10 to 20", [(10, 20)]),
        ("forward(): 10-20, backward(): 30", [(10, 20), (30, 30)]),
        ("7 (2024-12-27)", [(7, 7)]),
        ("N/A - missing test", []),
        ("", []),
    ],
)
def test_lines_of_one_file(finding: Finding, lines: str, expected: list[tuple[int, int]]) -> None:
    """Numbers, ranges and lists of them belong to the one file; no number is no lines."""
    assert [("src/a.py", expected, None)] == places(finding, section("`src/a.py`", lines))


def test_lines_that_cannot_be_paired(finding: Finding) -> None:
    """Three ranges for two files go to neither, which is reported on their line."""
    reading = finding(section("`a.py`, `b.py`", "1, 2, 3"))
    assert [(), ()] == [place.lines for place in reading.ticket.locations]
    assert [("location-lines", 10)] == reading.rules
    assert ["cannot tell which of the 2 files has which of the 3 line ranges"] == [
        problem.message for problem in reading.problems
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("(DDP integration)", "no line numbers in '(DDP integration)'"),
        ("c.py:5", "c.py is none of the files of this location"),
    ],
)
def test_lines_that_say_nothing(finding: Finding, lines: str, message: str) -> None:
    """Words without a number, and lines of a file that is not named, are reported."""
    reading = finding(section("`a.py`", lines))
    assert [("location-lines", 10)] == reading.rules
    assert [message] == [problem.message for problem in reading.problems]


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("`A.f()`, `g()`", ["A.f()", "g()"]),
        ("`f()`", ["f()", "f()"]),
        ("`A.f()`, the training loop", ["A.f(), the training loop"] * 2),
        ("N/A", [None, None]),
    ],
)
def test_symbols_of_two_files(finding: Finding, symbol: str, expected: list[str | None]) -> None:
    """Two symbols for two files are pairs; otherwise each file has what is stated."""
    found = places(finding, section("`a.py`, `b.py`", "", symbol))
    assert expected == [name for _, _, name in found]


def test_a_symbol_alone(finding: Finding) -> None:
    """A symbol without a file is a place too."""
    assert [(None, [], "Trainer")] == places(finding, section("N/A", "N/A", "`Trainer`"))


def test_a_table_of_places(finding: Finding) -> None:
    """A table with columns has a place in each row; that of files need not be the first one."""
    rows = "| 1 | `a.py` | 3 | `f` |\n| 2 | `b.py` | 4-5 | |\n"
    text = f"## Location\n\n| # | File | Lines | Function |\n|---|---|---|---|\n{rows}"
    assert [("a.py", [(3, 3)], "f"), ("b.py", [(4, 5)], None)] == places(finding, text)


def test_a_list_of_places(finding: Finding) -> None:
    """Without labels, the paths in backticks are the places; other code is not."""
    text = "## Location\n\n- `src/a.py:3-4` calls `self.f`\n- `b.py`\n"
    assert [("src/a.py", [(3, 4)], None), ("b.py", [], None)] == places(finding, text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("`/home/x/src/a.py`, `src/b.py`", ["/home/x/src/a.py", "src/b.py"]),
        ("`a.py`<br>`b.py`", ["a.py", "b.py"]),
        ("[`A.sol`](https://h.io/o/r/blob/1/src/A.sol#L3), [b.ts](../b.ts)", ["src/A.sol", "b.ts"]),
        ("a.py and b.py", ["a.py", "b.py"]),
        ("`a.py` (calls `f()`)", ["a.py"]),
        ("src/a.py (the update loop)", ["src/a.py"]),
        ("Multiple files in `src/agent/`", ["src/agent/"]),
        ("`src/agent/*.py`", ["src/agent/*.py"]),
        ("Multiple", []),
        ("N/A", []),
    ],
)
def test_files(finding: Finding, files: str, expected: list[str]) -> None:
    """Files are listed in any way, with remarks; a word for many files, or for none, is no file."""
    assert expected == [file for file, _, _ in places(finding, section(files))]


@pytest.mark.parametrize(
    ("files", "lines", "expected"),
    [
        ("`a.py` (lines 10-20), `b.py` (line 5)", "", [[(10, 20)], [(5, 5)]]),
        ("`a.py:10-20`, `b.py:5, 7`", "", [[(10, 20)], [(5, 5), (7, 7)]]),
        ("a.py:10-20, 30, b.py", "", [[(10, 20), (30, 30)], []]),
        ("`a.py`, `b.py`", "a.py 10-20, 30; b.py 5", [[(10, 20), (30, 30)], [(5, 5)]]),
        ("`a.py`, `b.py`", "`1-2` / `3-4`", [[(1, 2)], [(3, 4)]]),
        ("`a.py`, `b.py`", "Multiple", [[], []]),
    ],
)
def test_lines_of_each_file(
    finding: Finding, files: str, lines: str, expected: list[list[tuple[int, int]]]
) -> None:
    """Lines stand behind their file, in the row of lines with the files' names, or in their order."""
    assert expected == [found for _, found, _ in places(finding, section(files, lines))]


@pytest.mark.parametrize(
    ("written", "symbol", "names"),
    [
        ("`A.f()`", "A.f()", ("A.f",)),
        ("`A.f()`, `g(x, y)`", "A.f(), g(x, y)", ("A.f", "g")),
        ("`A.f` / `A.g`", "A.f / A.g", ("A.f", "A.g")),
        ("`class A`", "class A", ("A",)),
        ("A.f() and some_helper", "A.f() and some_helper", ("A.f", "some_helper")),
        ("`A` ratio computation", "A ratio computation", ("A",)),
        ("Module-level imports", "Module-level imports", ()),
        ("the training loop", "the training loop", ()),
    ],
)
def test_symbol(finding: Finding, written: str, symbol: str | None, names: tuple[str, ...]) -> None:
    """A symbol is kept as it is written, and the names in it are told from prose."""
    [place] = finding(section("`a.py`", "", written)).ticket.locations
    assert (symbol, names) == (place.symbol, place.symbols)


def test_rows_for_each_file(finding: Finding) -> None:
    """A further row of files begins further places, below headings as well."""
    text = "## Location\n\n**File:** `a.py`\n**Line:** 3\n\n### Also\n\nFile: b.py\nLines: 4-5\n"
    assert [("a.py", [(3, 3)], None), ("b.py", [(4, 5)], None)] == places(finding, text)


def test_paths_in_prose(finding: Finding) -> None:
    """Without backticks and labels, what looks like a path is one."""
    text = "## Location\n\n- src/a.py:10-20 waits, and/or copies\n- the folder src/agent/ as well\n"
    assert [("src/a.py", [(10, 20)], None), ("src/agent/", [], None)] == places(finding, text)
