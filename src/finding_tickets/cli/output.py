"""What commands print: data on stdout; talk, problems and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from finding_tickets.errors import BadDataError, ExitCode, TicketsError
from finding_tickets.report.text import STEERING, cells, fitted, printable, single_line

# rich takes 50 ms to load: a pipe never waits for it.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from finding_tickets.model.ticket import Problem

GAP = "  "
LEAST_COLUMN = 8
"""Columns of the terminal that are left of a table's columns where it is too narrow."""
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
REFRESHES_PER_SECOND = 8
NARROWEST, USUAL_WIDTH, WIDEST = 20, 80, 120
"""Columns that any terminal has, of one that does not tell its width, and that are used of a wider one."""
ASCII = str.maketrans("✓✗→·•▌─…", "+x>|*|-.")
"""Our own signs for terminals that can only show ASCII; rich escapes what tickets contain."""


class Format(StrEnum):
    """How a command prints its data."""

    TABLE = "table"
    JSON = "json"


def write(text: str) -> None:
    """Print data, ending in one newline; on a terminal a pager shows what is longer than that."""
    text = text.rstrip("\n") + "\n"
    if (
        is_terminal(sys.stdout)
        and sys.stdin.isatty()
        and 0 < terminal_size(sys.stdout).lines <= text.count("\n")
    ):
        import pydoc

        # As git does: with colours, and what was read stays on the screen. MANPAGER is for other pages.
        os.environ.setdefault("LESS", "-FRX")
        os.environ.pop("MANPAGER", None)
        pydoc.pager(printable(text, styled=colourful(sys.stdout)))
    else:
        write_all([text])


def write_all(pieces: Iterable[str], stream: TextIO | None = None) -> None:
    """Print data that is made piece by piece, on stdout or another stream.

    All that is printed passes here: whatever it is made of, nothing in it steers a terminal.
    """
    stream = stream or sys.stdout
    styled = colourful(stream)
    try:
        stream.writelines(printable(piece, styled=styled) for piece in pieces)
        stream.flush()
    except OSError as error:
        # The interpreter flushes the stream once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # If stderr fails there is nowhere to report it, and a reader that has gone away, such as head, is no
        # error.
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise BadDataError(f"cannot be written: {error.strerror}", file="standard output") from None


def say(text: str) -> None:
    """Print a message for the user on stderr."""
    write_all([text.rstrip("\n") + "\n"], sys.stderr)


def say_error(error: Exception) -> None:
    """Print what went wrong and where, on stderr."""
    write_all([f"{style('error', 'red', stream=sys.stderr)}: {single_line(str(error))}\n"], sys.stderr)


def say_errors(errors: Iterable[TicketsError | None]) -> ExitCode:
    """Print each error that there is, and return the worst of their exit codes."""
    codes = []
    for error in filter(None, errors):
        say_error(error)
        codes.append(error.exit_code)
    return ExitCode.worst(*codes)


def ask(question: str) -> str:
    """Ask on stderr, so that stdout has data alone.

    An empty line is an empty answer; the end of input interrupts.
    """
    sys.stderr.write(f"{question}: ")
    sys.stderr.flush()
    try:
        return input().strip()
    except EOFError:
        # There will be no answer, as after Ctrl-C.
        raise KeyboardInterrupt from None


def write_json(kind: str, data: Iterable[object], **more: object) -> None:
    """Print data in the envelope of all JSON that ``tickets`` prints; ``more`` stands before it."""
    envelope = {"schema_version": 1, "kind": kind, **more, "data": [*data]}
    text = json.dumps(envelope, indent=2, ensure_ascii=False)
    # In JSON these characters only occur in strings.
    write_all([STEERING.sub(lambda char: json.dumps(char[0])[1:-1], text), "\n"])


def write_log(log: Mapping[str, object]) -> None:
    """Print a log in SARIF."""
    write(json.dumps(log, indent=2, ensure_ascii=False))


def write_annotations(problems: Sequence[Problem]) -> None:
    """Print problems for GitHub, which shows them beside the lines."""
    from finding_tickets.report.formats.github import annotation

    if problems:
        write("\n".join(map(annotation, problems)))


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns, cut to fit where the width is known; elsewhere nothing is lost."""
    texts = table_lines([header, *rows], terminal_size(sys.stdout).columns)
    write("\n".join([style(texts[0], "bold"), *texts[1:]]))


def table_lines(rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """Rows with aligned columns, in lines of at most ``width`` columns of the terminal; 0 is any width.

    The widest columns are cut first, and the first one, which tells rows apart, last.
    """
    lines = [[single_line(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    room = width - len(GAP) * (len(widths) - 1)
    while width and sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: (at > 0 and widths[at] > LEAST_COLUMN, widths[at]))
        if widths[widest] <= LEAST_COLUMN:
            break
        widths[widest] -= 1
    return [GAP.join(map(fitted, line, widths)).rstrip() for line in lines]


def terminal_size(stream: TextIO) -> os.terminal_size:
    """The columns and lines of the terminal of a stream; 0 where the stream is no terminal.

    ``COLUMNS`` states the columns also where there is none.
    """
    stated = os.environ.get("COLUMNS", "")
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    return os.terminal_size((int(stated), size.lines)) if stated.isdecimal() and int(stated) else size


def style(text: str, *names: str, stream: TextIO | None = None) -> str:
    """``text`` in the named styles where the stream (stdout by default) shows colours."""
    codes = [STYLES[name] for name in " ".join(names).split()]
    if not codes or not colourful(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"


def colourful(stream: TextIO) -> bool:
    """Whether to colour: ``NO_COLOR`` says no, else ``FORCE_COLOR`` says yes, else terminals do."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def used_width(stream: TextIO) -> int:
    """The columns that are used of the terminal of a stream: longer lines are hard to read."""
    return min(max(terminal_size(stream).columns or USUAL_WIDTH, NARROWEST), WIDEST)


def _console(stream: TextIO) -> Console:
    """A console on the terminal of ``stream``, in the terminal's own colours or in none."""
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=stream,
        force_terminal=True,
        color_system="standard" if colourful(stream) else None,
        # rich's own style of code has a black background, also where the terminal's is white.
        theme=Theme({"markdown.code": "cyan"}),
        width=used_width(stream),
        highlight=False,
        markup=False,
        emoji=False,
    )


def rendered(text: str) -> str:
    """Markdown as the terminal that stdout is shows it; nothing in it can steer the terminal."""
    from finding_tickets.report.terminal import MarkdownText, Safe

    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(Safe(MarkdownText(text)))
    return "\n".join(line.rstrip(" ") for line in captured.get().split("\n")).strip("\n")


def with_signs(text: str) -> str:
    """Text for the terminal that stdout is, with our own signs in ASCII where it can show no others."""
    return text if sys.stdout.encoding.lower().startswith("utf") else text.translate(ASCII)


@dataclass
class Progress:
    """The progress of measuring tickets: a line for each, or one that moves on a terminal."""

    total: int
    how_far: Callable[[], Iterable[str]]
    is_moving: bool
    done: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)

    def started(self, ticket: str) -> None:
        """A process has begun to measure the ticket; several may run at once."""
        # A new mapping, because another thread draws the line.
        self.running = {**self.running, ticket: self.running.get(ticket, 0) + 1}

    def ended(self, ticket: str, verdict: str) -> None:
        """The ticket is measured."""
        self.done += 1
        self.running = {name: runs for name, runs in self.running.items() if name != ticket}
        if not self.is_moving:
            say(f"[{self.done}/{self.total}] {ticket}: {verdict}")

    def line(self) -> Text:
        """The seconds so far, how many are done, how far the others are; cut where the terminal ends."""
        from rich.text import Text

        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        said = {line.partition(":")[0]: single_line(line) for line in self.how_far()}
        now = [
            said.get(name) or (f"{name}: run {runs}" if runs > 1 else name)
            for name, runs in self.running.items()
        ]
        doing = f"measuring {', '.join(now)}" if now else "" if self.done else "starting"
        line = f"{minutes}:{seconds:02}  {self.done} of {self.total} done  {doing}".rstrip()
        return Text(line, no_wrap=True, overflow="ellipsis")


@contextmanager
def progress(tickets: Sequence[str], how_far: Callable[[], Iterable[str]]) -> Iterator[Progress]:
    """Show the progress of measuring ``tickets`` on stderr; a terminal is left as it was.

    ``how_far`` says of tickets at work how far they are: ``A-1: point 3 of 6``.
    """
    shown = Progress(len(tickets), how_far, is_moving=bool(tickets) and is_terminal(sys.stderr))
    if not shown.is_moving:
        if tickets:
            say(f"measuring {', '.join(tickets)}")
        yield shown
        return
    from rich.live import Live

    console = _console(sys.stderr)
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
