"""Any document can be shown on a terminal of any width."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from finding_tickets.report.terminal import MarkdownText, Safe
from finding_tickets.report.text import aligned, printable

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "tickets").rglob("*.md"))
STEERING = ["\x1b[31m", "\x9b8m", "\x07", "\r", "\t", "\u202e", "&#27;", "&#x9b;", "\ud800", "\x00"]
BLOCKS = ["|", "```", "~~~", "> ", "- ", "1. ", "# ", "---\n", "\n\n", "    ", "</div>\n", "[x]: y\n"]
INLINE = ["`", "**", "~~", "<!--", "-->", "<b>", "<br>", "![a](b)", "[x](y)", "<https://a.b>"]
LETTERS = ["é", "字", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}", "ש"]
PIECES = [*STEERING, *BLOCKS, *INLINE, *LETTERS]
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def rendered(text: str, width: int) -> str:
    """A text as a terminal of a width gets it."""
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, color_system="standard", width=width).print(
        Safe(MarkdownText(text))
    )
    return stream.getvalue()


@pytest.mark.parametrize("width", [12, 40, 100])
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_no_text_breaks_the_terminal(document: Path, width: int) -> None:
    """Markup, control characters and wide letters at any place leave lines of printable text that fit."""
    generator = random.Random(f"{document.stem} {width}")  # noqa: S311 - the same texts each time
    characters = list(document.read_text(encoding="utf-8"))
    for _ in range(80):
        characters.insert(generator.randrange(len(characters) + 1), generator.choice(PIECES))
    lines = STYLE.sub("", rendered("".join(characters), width)).split("\n")
    assert "\n".join(lines) == printable("\n".join(lines))
    assert [] == [line for line in lines if "\t" in line or cell_len(line) > width]


def test_letters_of_all_scripts_are_kept() -> None:
    """What people write shows as it is: other scripts, joined pictures, marks on letters."""
    for text in ("naïve", "e\u0301", "字幕", "שלום", "سلام", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}"):
        assert text == printable(text)
        assert text in rendered(text, 40)


@pytest.mark.parametrize("width", [5, 10, 24, 30, 34, 40, 60, 80])
@pytest.mark.parametrize("last", ["", "one two", "word " * 20, "x" * 90, "等待" * 30, "é\u0301 字" * 9])
def test_a_table_fits_any_terminal(width: int, last: str) -> None:
    """Whatever room its columns are left, no line is wider and no letter is lost unless it is to be cut."""
    rows = [("name", "v " * 30, last), ("a", "", "")]
    lines = aligned(rows, width=width)
    assert sorted(f"namea{'v' * 30}{''.join(last.split())}") == sorted("".join("".join(lines).split()))
    assert max(map(cell_len, lines)) <= width
    assert max(map(cell_len, aligned(rows, width=width, cut=True))) <= width


def test_columns_stand_where_cells_are_counted() -> None:
    """A letter that takes two cells of a terminal moves the next column by two."""
    first, second = aligned([("字", "x"), ("abc", "y")])
    # The column has three cells and two blanks behind it.
    assert [5, 5] == [cell_len(line[:-1]) for line in (first, second)]
