"""Terminals: rich output, and the progress of a measurement."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from finding_tickets.cli.output import colourful, is_terminal, say, terminal_width, write

# rich takes 50 ms to load: a pipe never waits for it.
if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

REFRESHES_PER_SECOND = 8
WIDEST = 120
"""Columns that are used of a wider terminal: longer lines are hard to read."""
USUAL = 80
"""Columns of a terminal that does not tell its width."""
ASCII = str.maketrans("✓✗→·•▌─…", "+x>|*|-.")
"""Our own signs for terminals that can only show ASCII; rich escapes what tickets contain."""


def console_of(stream: TextIO) -> Console:
    """A console on the terminal of ``stream``, in the terminal's own colours or in none."""
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=stream,
        force_terminal=True,
        color_system="standard" if colourful(stream) else None,
        # rich's own style of code has a black background, also where the terminal's is white.
        theme=Theme({"markdown.code": "cyan"}),
        width=min(terminal_width(stream) or USUAL, WIDEST),
        highlight=False,
        markup=False,
        emoji=False,
    )


def write_rich(stream: TextIO, parts: Iterable[RenderableType]) -> None:
    """Print data on the terminal of ``stream``; nothing in its text can steer it."""
    from finding_tickets.report.terminal import Safe

    console = console_of(stream)
    with console.capture() as captured:
        for part in parts:
            console.print(Safe(part))
    text = "\n".join(line.rstrip(" ") for line in captured.get().split("\n"))
    write(text.translate(ASCII) if console.options.ascii_only else text)


class Progress:
    """The progress of measuring tickets: a line for each, and one that moves on a terminal."""

    def __init__(self, tickets: Sequence[str], *, moving: bool) -> None:
        # Only the line that moves on a terminal can be drawn again, so elsewhere each end is a line.
        self._total, self._done, self._moving = len(tickets), 0, moving
        self._running: dict[str, None] = {}
        self._start = time.monotonic()
        if tickets and not moving:
            say(f"measuring {', '.join(tickets)}")

    def started(self, ticket: str) -> None:
        """A process measures the ticket now; several may do so at once."""
        # A new mapping, because another thread draws the line.
        self._running = {**self._running, ticket: None}

    def ended(self, ticket: str, verdict: str) -> None:
        """The ticket is measured."""
        self._done += 1
        self._running = {name: None for name in self._running if name != ticket}
        if not self._moving:
            say(f"[{self._done}/{self._total}] {ticket}: {verdict}")

    def line(self) -> Text:
        """The seconds so far, how many are done, which are being measured; cut where the terminal ends."""
        from rich.text import Text

        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        now = f"measuring {', '.join(self._running)}" if self._running else "starting"
        line = f"{minutes}:{seconds:02}  {self._done} of {self._total} done  {now}"
        return Text(line, no_wrap=True, overflow="ellipsis")


@contextmanager
def progress(tickets: Sequence[str]) -> Iterator[Progress]:
    """Show the progress of measuring ``tickets`` on stderr; a terminal is left as it was."""
    if not tickets or not is_terminal(sys.stderr):
        yield Progress(tickets, moving=False)
        return
    from rich.live import Live

    shown = Progress(tickets, moving=True)
    console = console_of(sys.stderr)
    with Live(
        console=console,
        get_renderable=shown.line,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
    ):
        # A process that is killed could not bring the cursor back.
        console.show_cursor(True)
        yield shown
