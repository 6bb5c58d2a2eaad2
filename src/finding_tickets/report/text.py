"""Plain text for people: safe characters, counted nouns, and tables of aligned columns.

A terminal gets the same lines as a pipe, but coloured, and with columns that are cut to its ``width``, which
is 0 for a pipe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import category, east_asian_width

from finding_tickets.model.vocabulary import Level, Verdict

INDENT = "  "
# The colours of verdicts; those that are not here are red.
COLOURS = {
    Verdict.VERIFIED: "green",
    Verdict.REPRODUCED: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.UNVERIFIED: "dim",
}
LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
# What columns of a table are cut to at least, and the last one; with less room the last one is left out.
LEAST_COLUMN, LEAST_CUT = 8, 12
# Control and format characters, surrogates and line separators: they steer a terminal or reorder its
# text. Line ends, tabs and the two joiners are none of them; a carriage return alone would write over
# the line.
STEERING = re.compile(
    "\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
_STEERING_OR_STYLE = re.compile(f"{_STYLE.pattern}|{STEERING.pattern}")

# Colours a text in the style of a name, such as ``bold`` or ``red``.
Styler = Callable[[str, str], str]


class Styled(NamedTuple):
    """The text of a table cell and the style that it is shown in; empty for none."""

    text: str
    style: str = ""


TableCell = str | Styled


class TextSection(NamedTuple):
    """A table with a title, unless that is empty, or a list of lines where each row has one cell."""

    title: str
    rows: Sequence[Sequence[TableCell]]
    header: Sequence[str] = ()
    is_cut: bool = (
        False  # whether the last column is cut where a terminal is too narrow
    )


def fields_of(record: object, *names: str) -> dict[str, object]:
    """Return some fields of a record for JSON, whose keys have the same names."""
    return {name: getattr(record, name) for name in names}


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str, *, styled: bool = False) -> str:
    """Leave colours out and replace each other character that steers a terminal by a ``?``.

    Tabs and line ends stay. In a text that is ``styled``, colours stay too: its foreign parts went through
    here before they got one.
    """
    if text.isprintable():
        return text
    if styled:
        return _STEERING_OR_STYLE.sub(lambda at: at[1] or "?", text)
    return STEERING.sub("?", _STYLE.sub("", text))


def single_line(text: str) -> str:
    """Return one line that cannot steer a terminal, with white space collapsed."""
    return printable(" ".join(text.split())).strip()


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    taken = 0
    for char in text:
        if east_asian_width(char) in "WF":
            taken += 2
        elif category(char) not in {"Mn", "Me", "Cf"}:
            taken += 1
    return taken


def fitted(text: str, width: int) -> str:
    """Return a text in exactly this many columns: filled up with blanks, or cut, which shows."""
    left = width - cells(text)
    if left >= 0:
        return text + " " * left
    while text and cells(text) >= width:
        text = text[:-1]
    return text + "…" + " " * (width - 1 - cells(text))


def plainly(text: str, style: str) -> str:  # noqa: ARG001 - a styler's signature
    """Return the text without a colour."""
    return text


def aligned(
    rows: Iterable[Sequence[TableCell]],
    style: Styler = plainly,
    width: int = 0,
    *,
    evenly: bool = False,
) -> list[str]:
    """Return rows of cells as lines with aligned columns, in which nothing can steer a terminal.

    With a ``width``, the last column is cut until the lines fit; ``evenly`` cuts the widest ones.
    """
    table: list[list[Styled]] = []
    for row in rows:
        styled = [cell if isinstance(cell, Styled) else Styled(cell) for cell in row]
        table.append([Styled(printable(cell.text), cell.style) for cell in styled])
    widths = [
        max(cells(cell.text) for cell in column) for column in zip(*table, strict=True)
    ]
    room = width - len(INDENT) * (len(widths) - 1)
    if width and evenly:
        _shrink(widths, room)
    elif width and sum(widths) > room:
        widths[-1] -= sum(widths) - room
        if widths[-1] < LEAST_CUT:
            widths.pop()
            table = [styled[:-1] for styled in table]
    lines = []
    for styled in table:
        pieces = []
        for cell, columns in zip(styled, widths, strict=True):
            filled = fitted(cell.text, columns)
            text = filled.rstrip(" ")
            # The style ends with the text: blanks between columns have no colour.
            pieces.append(
                (style(text, cell.style) if text else "") + filled[len(text) :]
            )
        lines.append(INDENT.join(pieces).rstrip(" "))
    return lines


def _shrink(widths: list[int], room: int) -> None:
    """Reduce the widest columns until all fit into ``room``; the first one, which tells rows apart, last."""
    while sum(widths) > room:
        others = [at for at in range(1, len(widths)) if widths[at] > LEAST_COLUMN]
        widest = max(others, key=lambda at: widths[at], default=0)
        if widths[widest] <= LEAST_COLUMN:
            return
        widths[widest] -= 1


def table_lines(
    rows: Sequence[Sequence[TableCell]],
    style: Styler = plainly,
    width: int = 0,
    *,
    most: int | None = None,
) -> Iterator[str]:
    """Yield rows as indented lines with aligned columns; beyond ``most``, how many more there are."""
    shown = rows[:most]
    for line in aligned(shown, style, max(width - len(INDENT), 0)):
        yield INDENT + line
    if len(rows) > len(shown):
        yield f"{INDENT}and {len(rows) - len(shown)} more (-v lists them)"


def section_lines(section: TextSection, style: Styler, width: int = 0) -> Iterator[str]:
    """Yield the title of a section, and below it, indented, its header and its rows."""
    if section.title:
        yield style(printable(section.title), "bold")
    header = (
        [[Styled(title, "dim") for title in section.header]] if section.header else []
    )
    yield from table_lines(
        [*header, *section.rows], style, width if section.is_cut else 0
    )
