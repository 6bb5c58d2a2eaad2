"""A terminal to run the tool on: what it shows in the end, and everything that was sent to it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyte

ROWS = 400
"""So many that no test's output scrolls away."""
CHUNK = 1 << 16
PATIENCE = 180.0
CTRL_C = b"\x03"
TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of the session, so that a key can interrupt, and becomes the command."""

Key = Callable[[pyte.Screen], bytes]


@dataclass(frozen=True)
class Shown:
    """How a command ended on a terminal: exit code, last screen, every line that was seen, all bytes."""

    code: int
    screen: pyte.Screen
    seen: frozenset[str]
    sent: bytes

    @property
    def lines(self) -> list[str]:
        """The lines of the last screen, without blanks at their ends and below the last."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")


def no_key(_: pyte.Screen) -> bytes:
    """Nobody is at the keyboard."""
    return b""


def show(
    command: Sequence[str],
    *,
    columns: int = 100,
    environment: Mapping[str, str] | None = None,
    key: Key = no_key,
) -> Shown:
    """Run a command on a terminal; ``key`` sees each screen and says what is typed then, once."""
    screen = pyte.Screen(columns, ROWS)
    stream = pyte.ByteStream(screen)
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    unset = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *command],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        env={**inherited, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(inside)
    sent, seen, typed = b"", set[str](), b""
    deadline = time.monotonic() + PATIENCE
    try:
        while chunk := _read(outside, deadline):
            sent += chunk
            stream.feed(chunk)
            seen |= {line.rstrip() for line in screen.display}
            if not typed and (typed := key(screen)):
                os.write(outside, typed)
    finally:
        # A command that has not ended loses its terminal, and ends of that.
        os.close(outside)
    return Shown(process.wait(PATIENCE), screen, frozenset(seen), sent)


def _read(terminal: int, deadline: float) -> bytes:
    """What comes next; empty where the command has ended.

    Raises:
        TimeoutError: Nothing comes, and the command does not end.
    """
    if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise TimeoutError("the command neither ends nor says anything")
    try:
        return os.read(terminal, CHUNK)
    except OSError:
        # Linux says so where the other end is closed.
        return b""
