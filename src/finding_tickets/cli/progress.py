"""What `verify` says while it measures: a line that moves on a terminal, lines that stay elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from finding_tickets.cli.output import is_terminal, say

if TYPE_CHECKING:
    from rich.text import Text

REFRESHES_PER_SECOND = 8
WAITING = "starting"


class Progress(Protocol):
    """Is told what happens to each ticket."""

    def started(self, ticket: str) -> None:
        """A process measures it now; said again for every other process that does."""

    def ended(self, ticket: str, verdict: str) -> None:
        """It is done."""


@contextmanager
def progress(tickets: Sequence[str]) -> Iterator[Progress]:
    """Tells of measuring ``tickets`` on stderr until the block is left, which leaves a terminal as it was."""
    if not tickets or not is_terminal(sys.stderr):
        yield _Lines(tickets)
        return
    from rich.live import Live

    from finding_tickets.cli.console import console_of

    line = _Line(len(tickets))
    console = console_of(sys.stderr)
    with Live(
        console=console,
        get_renderable=line.text,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
    ):
        # A process that is killed could not bring it back.
        console.show_cursor(True)
        yield line


class _Lines:
    """A line when it begins and one for each ticket."""

    def __init__(self, tickets: Sequence[str]) -> None:
        self._total, self._done = len(tickets), 0
        if tickets:
            say(f"measuring {', '.join(tickets)}")

    def started(self, ticket: str) -> None:
        """Nothing: that they are measured was said."""

    def ended(self, ticket: str, verdict: str) -> None:
        """Which of how many, and its verdict."""
        self._done += 1
        say(f"[{self._done}/{self._total}] {ticket}: {verdict}")


class _Line:
    """One line: how long it takes so far, how many are done, which are at work."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._running: dict[str, None] = {}
        self._since = time.monotonic()

    def started(self, ticket: str) -> None:
        """It is at work, too."""
        # A new mapping at once: another thread draws the line.
        self._running = {**self._running, ticket: None}

    def ended(self, ticket: str, verdict: str) -> None:  # noqa: ARG002 - the signature of the protocol
        """It is at work no more; its verdict comes with the result."""
        self._done += 1
        self._running = {name: None for name in self._running if name != ticket}

    def text(self) -> Text:
        """The line as it is now, cut where the terminal ends."""
        from rich.text import Text

        minutes, seconds = divmod(int(time.monotonic() - self._since), 60)
        now = f"measuring {', '.join(self._running)}" if self._running else WAITING
        line = f"{minutes}:{seconds:02}  {self._done} of {self._total} done  {now}"
        return Text(line, no_wrap=True, overflow="ellipsis")
