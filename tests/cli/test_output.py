"""Data on stdout, talk on stderr, and colours only where they are wanted."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from finding_tickets.cli import output
from finding_tickets.report.rows import csv_lines
from finding_tickets.report.text import aligned


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing of colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("terminal", "environment", "colours"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        # An empty value counts as not set, by both conventions.
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": ""}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours(
    terminal: bool, environment: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminals show colours unless told otherwise; FORCE_COLOR asks for them anywhere, NO_COLOR forbids."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if terminal else io.StringIO()
    expected = "\x1b[1;31mx\x1b[0m" if colours else "x"
    assert expected == output.style("x", "bold", "red", stream=stream)


def test_the_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    """All JSON has a schema version, a kind and data, and keeps letters as they are."""
    output.write_json("numbers", [1, "é"])
    printed = capsys.readouterr().out
    assert {"schema_version": 1, "kind": "numbers", "data": [1, "é"]} == json.loads(printed)
    assert "é" in printed


def test_json_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters, overrides of direction and halves of characters are escaped, and read as before."""
    hostile = "\x1b[31m\x9b8m\x7f\u202eback\u2028\udc80 שלום"
    output.write_json("texts", [hostile])
    printed = capsys.readouterr().out
    assert [hostile] == json.loads(printed)["data"]
    assert "שלום" in printed
    assert printed.replace("\n", "").isprintable()


def test_a_table_on_a_terminal_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last column is cut where the line would be longer than the terminal is wide."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((30, 9)))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
    output.write_table(("A", "TITLE"), [("long", "x" * 300), ("b", "y" * 24)])
    # 30 columns less 4 of the first and 2 between: 24 are left.
    assert f"A     TITLE\nlong  {'x' * 23}…\nb     {'y' * 24}\n" == capsys.readouterr().out


def test_widths_are_those_of_a_terminal() -> None:
    """A wide letter takes two columns and a combining one none; the widest columns are cut, the ID last."""
    rows = [("A-1", "漢字漢字漢字", "x"), ("A-2", "e\u0301tat", "é" * 30)]
    # Six wide letters take 12 columns and the accent none: 3 + 2 + 12 + 2 + 30.
    assert [f"A-1  {'漢字' * 3}  x", f"A-2  e\u0301tat{' ' * 8}  {'é' * 30}"] == aligned(rows, evenly=True)
    # 25 columns less 3 and 2 gaps of 2 leave 9 for each. A wide letter does not fit into the ninth column.
    assert [f"A-1  {'漢字' * 2}…  x", f"A-2  e\u0301tat{' ' * 5}  {'é' * 8}…"] == aligned(
        rows, width=25, evenly=True
    )


def test_text_of_a_file_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in a title are shown as question marks, line breaks as blanks."""
    output.write_table(("A",), [("\x1b[31mred\x07\n next",)])
    assert "A\nred? next\n" == capsys.readouterr().out


def test_no_cell_of_comma_separated_values_is_a_formula() -> None:
    """A spreadsheet shows what a ticket says and calculates nothing."""
    assert ["title\n", "'=1+1\n", "a b\n"] == list(csv_lines([["title"], ["=1+1"], ["a\tb"]]))
