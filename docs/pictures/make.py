"""The pictures of README.md, made from the program itself: ``python -m docs.pictures.make [--check]``.

The terminal's is what is on the screen when the command has ended. With ``--check`` nothing is written; the
exit code is 1 where a picture is not what the program shows now.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from pyte.screens import Char
from tests.terminal import show

HERE = Path(__file__).parent
COMMAND = ("tickets", "verify", "b7-pt-02")
COLUMNS, ROWS = 112, 34
"""The picture's part of the screen: its upper left."""
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8, 18, 16
"""In pixels."""
BACKGROUND, TEXT = "#0d1117", "#d1d7e0"
COLOURS = {
    "red": "#ff7b72",
    "green": "#56d364",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
}
"""What the terminal's names stand for; each is readable on the background."""
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
Cell = tuple[int, Char]


def terminal() -> str:
    """The screen of a terminal after the command, as SVG."""
    ended = show(COMMAND, columns=COLUMNS)
    if ended.code:
        raise SystemExit(f"{' '.join(COMMAND)} ended with exit code {ended.code}")
    screen = ended.screen.buffer
    lines = [[(column, screen[row][column]) for column in range(COLUMNS)] for row in range(ROWS)]
    prompt = [*_typed("$ ", "green"), *_typed(" ".join(COMMAND), "default")]
    return _svg([list(enumerate(prompt)), *lines], f"The beginning of what {' '.join(COMMAND)} prints")


def _typed(text: str, colour: str) -> Iterator[Char]:
    return (Char(char, fg=colour, bold=True) for char in text)


def _svg(lines: list[list[Cell]], title: str) -> str:
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    texts = (text for row, cells in enumerate(lines) for text in _texts(row, cells))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            f'<g font-family="{FONT}" font-size="13.3" fill="{TEXT}">',
            *texts,
            "</g>",
            "</svg>\n",
        ]
    )


def _texts(row: int, cells: Iterable[Cell]) -> Iterator[str]:
    """The runs of a line that look alike, each stretched to its cells whatever font there is."""
    y = MARGIN + row * CELL_HEIGHT + 13
    for (colour, bold, underlined), run in groupby(cells, _look):
        group = list(run)
        text = "".join(char.data for _, char in group)
        if not text.strip():
            continue
        first = group[0][0] + len(text) - len(text.lstrip())
        text = text.strip()
        style = [f'fill="{COLOURS[colour]}"'] if colour in COLOURS else []
        style += ['font-weight="bold"'] if bold else []
        style += ['text-decoration="underline"'] if underlined else []
        place = f'x="{MARGIN + first * CELL_WIDTH}" y="{y}" textLength="{len(text) * CELL_WIDTH}"'
        # Readers of SVG make one blank of several.
        shown = escape(text, quote=False).replace(" ", "&#160;")
        yield f"<text {' '.join([place, *style])}>{shown}</text>"


def _look(cell: Cell) -> tuple[str, bool, bool]:
    """Colour, whether it is bold, whether it is underlined."""
    return cell[1].fg, cell[1].bold, cell[1].underscore


PICTURES = {"terminal.svg": terminal}


def main(arguments: list[str]) -> int:
    """Write every picture, or say which are old."""
    old = []
    for name, make in PICTURES.items():
        made, file = make().encode(), HERE / name
        if "--check" not in arguments:
            file.write_bytes(made)
        elif not file.is_file() or file.read_bytes() != made:
            old.append(name)
    if old:
        sys.stderr.write(f"not what the program shows: {', '.join(old)}; run python -m docs.pictures.make\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
