"""The pictures of README.md, made from the program itself: ``python -m docs.pictures.make [--check]``.

The terminal's is what is on the screen when the command has ended. The report's is a photograph, which is
another one in each browser, so the digest of its page is kept beside it. With ``--check`` nothing is written;
the exit code is 1 where the screen or the page is not what the program makes now.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright
from pyte.screens import Char
from tests.terminal import show

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REGISTER = ("tickets", "fixes", "verifiers", "evidence")
SCREEN, PHOTOGRAPH, DIGEST = "terminal.svg", "report.png", "report.sha256"
TICKET = "B7-PT-02"
VIEWPORT = ViewportSize(width=1100, height=640)
COMMAND = ("tickets", "verify", TICKET.lower())
COLUMNS, ROWS = 100, 14
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


def report(folder: Path) -> Path:
    """The page that the program makes of this repository's register, without its commit, which changes."""
    page, register = folder / "report.html", folder / "finding-tickets"
    for name in REGISTER:
        shutil.copytree(ROOT / name, register / name, ignore=shutil.ignore_patterns("__pycache__"))
    ended = show(["tickets", "report", "--root", str(register), "--format", "html", "-o", str(page)])
    if ended.code:
        raise SystemExit(f"tickets report ended with exit code {ended.code}")
    return page


def photograph(page: Path, picture: Path) -> None:
    """What a browser shows of the page first."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport=VIEWPORT)
        view.goto(page.as_uri())
        view.wait_for_selector("#won")
        view.screenshot(path=picture)
        browser.close()


def main(arguments: list[str]) -> int:
    """Write what is not what the program shows now, or with ``--check`` say so."""
    with tempfile.TemporaryDirectory() as folder:
        page = report(Path(folder))
        # The revision is another one with each commit, that of the digest too.
        lasting = re.sub(rb'<span class="revision">[^<]*</span>', b"", page.read_bytes())
        digest = hashlib.sha256(lasting).hexdigest()
        made = {SCREEN: terminal(), DIGEST: f"{digest}\n"}
        old = [name for name, text in made.items() if _text(name) != text]
        if "--check" in arguments:
            sys.stderr.writelines(f"docs/pictures/{name}: run python -m docs.pictures.make\n" for name in old)
            return 1 if old else 0
        if DIGEST in old:
            photograph(page, HERE / PHOTOGRAPH)
        for name in old:
            (HERE / name).write_text(made[name], encoding="utf-8")
    return 0


def _text(name: str) -> str | None:
    file = HERE / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
