"""The only place that writes to the terminal: data on stdout, talk on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TextIO

from finding_tickets.errors import BadDataError
from finding_tickets.report.text import printable

GAP = "  "
SHORTEST_CUT = 20
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON need not escape and a terminal would obey; in JSON it can only stand in a string."""


class Format(StrEnum):
    """How a command prints its data."""

    TABLE = "table"
    JSON = "json"


def write(text: str) -> None:
    """Print data, ending in one newline; a reader that has gone away, such as ``head``, is no error.

    Raises:
        BadDataError: What stdout leads to cannot be written, such as a file on a full disk.
    """
    _print(text, sys.stdout)


def write_all(pieces: Iterable[str]) -> None:
    """Print data that is made piece by piece, as it is.

    Raises:
        BadDataError: As ``write`` does.
    """
    _print_all(pieces, sys.stdout)


def say(text: str) -> None:
    """Print a message for the user, who may be reading it beside the data."""
    _print(printable(text), sys.stderr)


def say_error(error: Exception) -> None:
    """Print what went wrong and where, on stderr."""
    _print(f"{style('error', 'red', stream=sys.stderr)}: {printable(str(error))}", sys.stderr)


def ask(question: str) -> str:
    """What the user answers to a question on stderr, so that stdout has data alone; empty for no answer.

    Raises:
        KeyboardInterrupt: There will be no answer.
    """
    sys.stderr.write(f"{question}: ")
    sys.stderr.flush()
    try:
        return input().strip()
    except EOFError:
        raise KeyboardInterrupt from None


def _print(text: str, stream: TextIO) -> None:
    _print_all([text.rstrip("\n") + "\n"], stream)


def _print_all(pieces: Iterable[str], stream: TextIO) -> None:
    try:
        stream.writelines(pieces)
        stream.flush()
    except OSError as error:
        # The interpreter flushes the stream once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Of stderr there is nowhere to say so.
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise BadDataError(f"cannot be written: {error.strerror}", file="standard output") from None


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_json(kind: str, data: Iterable[object], **more: object) -> None:
    """Print data in the envelope that every JSON output of ``tickets`` has; ``more`` stands before it.

    Of ``data`` there is one item at a time.
    """
    pieces = _enveloped({"schema_version": 1, "kind": kind, **more}, data)
    write_all(STEERING.sub(lambda char: f"\\u{ord(char[0]):04x}", piece) for piece in pieces)


def _enveloped(head: dict[str, object], data: Iterable[object]) -> Iterator[str]:
    """The lines of ``json.dumps({**head, "data": [*data]}, indent=2)``."""
    yield f'{_json(head)[:-2]},\n  "data": ['
    separator = ""
    for item in data:
        yield f"{separator}\n{' ' * 4}" + _json(item).replace("\n", f"\n{' ' * 4}")
        separator = ","
    yield "\n  ]\n}\n" if separator else "]\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def write_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print comma-separated values with a header, each row on one line, and no formula in it."""
    from finding_tickets.report.rows import csv_lines

    write("".join(csv_lines([header, *rows])))


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns; on a terminal the last one is cut to fit, elsewhere nothing is lost."""
    lines = [[plain(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = terminal_width(sys.stdout) - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    title, *body = [_row(line, widths, room) for line in lines]
    write("\n".join([style(title, "bold"), *body]))


def _row(cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    aligned = [cell.ljust(width) for cell, width in zip(cells[:-1], widths, strict=False)]
    last = cells[-1]
    if room >= SHORTEST_CUT and len(last) > room:
        last = last[: room - 1] + "…"
    return GAP.join([*aligned, last]).rstrip()


def terminal_width(stream: TextIO) -> int:
    """Columns of the terminal of a stream; 0 where it is none, so that nothing is cut."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def plain(text: str) -> str:
    """One line that cannot steer the terminal: white space collapsed, control characters shown as ``?``."""
    return printable(" ".join(text.split()))


def style(text: str, *names: str, stream: TextIO | None = None) -> str:
    """``text`` in the named styles where the stream (stdout by default) shows colours."""
    if not names or not colourful(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(STYLES[name] for name in names)}m{text}\x1b[0m"


def colourful(stream: TextIO) -> bool:
    """Whether to colour: ``NO_COLOR`` says no, else ``FORCE_COLOR`` says yes, else terminals do."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at the stream on a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
