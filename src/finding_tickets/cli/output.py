"""Print data on stdout; messages, problems and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from finding_tickets.errors import BadDataError, ExitCode, TicketsError
from finding_tickets.report.text import (
    STEERING,
    Styled,
    TableCell,
    aligned,
    printable,
    single_line,
)

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}
# Columns that any terminal has, of one that does not tell its width, and that are used of a wider one.
NARROWEST, USUAL_WIDTH, WIDEST = 20, 80, 120


class Format(StrEnum):
    """The format in which a command prints its data."""

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
            raise BadDataError(
                f"cannot be written: {error.strerror}", file="standard output"
            ) from None


def say(text: str) -> None:
    """Print a message for the user on stderr."""
    write_all([text.rstrip("\n") + "\n"], sys.stderr)


def say_error(error: Exception) -> None:
    """Print what went wrong and where, on stderr."""
    write_all(
        [f"{style('error', 'red', stream=sys.stderr)}: {single_line(str(error))}\n"],
        sys.stderr,
    )


def say_errors(errors: Iterable[TicketsError | None]) -> ExitCode:
    """Print each error that there is, and return the worst of their exit codes."""
    codes = []
    for error in filter(None, errors):
        say_error(error)
        codes.append(error.exit_code)
    return ExitCode.worst(*codes)


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
    """Print problems as annotations of GitHub."""
    from finding_tickets.report.formats.github import annotation

    if problems:
        write("\n".join(map(annotation, problems)))


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns, cut to fit where the width is known; elsewhere nothing is lost."""
    table: list[list[TableCell]] = [[Styled(title, "bold") for title in header]]
    for row in rows:
        table.append([single_line(cell) for cell in row])
    write(
        "\n".join(aligned(table, style, terminal_size(sys.stdout).columns, evenly=True))
    )


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the columns and lines of a stream's terminal; 0 if the stream is not a terminal.

    ``COLUMNS`` states the columns also where there is none.
    """
    stated = os.environ.get("COLUMNS", "")
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    return (
        os.terminal_size((int(stated), size.lines))
        if stated.isdecimal() and int(stated)
        else size
    )


def style(text: str, *names: str, stream: TextIO | None = None) -> str:
    """``text`` in the named styles where the stream (stdout by default) shows colours."""
    codes = [STYLES[name] for name in " ".join(names).split()]
    if not codes or not colourful(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"


def colourful(stream: TextIO) -> bool:
    """Return True for colours: never with ``NO_COLOR``, always with ``FORCE_COLOR``, else on terminals."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Return True if the stream is a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def used_width(stream: TextIO) -> int:
    """The columns that are used of the terminal of a stream: longer lines are hard to read."""
    return min(max(terminal_size(stream).columns or USUAL_WIDTH, NARROWEST), WIDEST)
