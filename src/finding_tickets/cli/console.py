"""rich on the terminal of a stream; imported where there is one, so that a pipe never waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.theme import Theme

from finding_tickets.cli.output import colourful, terminal_width, write
from finding_tickets.report.terminal import Safe

WIDEST = 120
"""Columns that are used of a terminal that has more: longer lines are hard to read."""
USUAL = 80
"""Columns of a terminal that does not tell."""

ASCII = str.maketrans("✓✗→·•▌─…", "+x>|*|-.")
"""Signs of ours for terminals that have no others; what tickets say is escaped there."""
# rich's own has a black background, also where the terminal's is white.
THEME = Theme({"markdown.code": "cyan"})


def console_of(stream: TextIO) -> Console:
    """A console on the terminal of ``stream``: in the terminal's own colours, or in none."""
    return Console(
        file=stream,
        force_terminal=True,
        color_system="standard" if colourful(stream) else None,
        theme=THEME,
        width=min(terminal_width(stream) or USUAL, WIDEST),
        highlight=False,
        markup=False,
        emoji=False,
    )


def write_rich(stream: TextIO, parts: Iterable[RenderableType]) -> None:
    """Print data on stdout, which is the terminal of ``stream``; nothing in its text can steer it."""
    console = console_of(stream)
    with console.capture() as captured:
        for part in parts:
            console.print(Safe(part))
    text = "\n".join(line.rstrip(" ") for line in captured.get().split("\n"))
    write(text.translate(ASCII) if console.options.ascii_only else text)
