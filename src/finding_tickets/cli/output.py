"""Everything that commands print or write for people: data on stdout or in a file, talk on stderr."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import replace
from finding_tickets.report.text import printable, single_line

GAP = "  "
SHORTEST_CUT = 20
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
SUMMARY_LIMIT = 1024**2
"""Bytes that GitHub takes for the summary of a step; of a longer one it shows nothing."""
# A path whose bytes are not UTF-8 is still written.
ENCODING_ERRORS = "backslashreplace"
STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that JSON need not escape and a terminal would obey; in JSON they only occur in strings."""


class Format(StrEnum):
    """How a command prints its data."""

    TABLE = "table"
    JSON = "json"


def write(text: str) -> None:
    """Print data, ending in one newline; raises as ``write_all`` does."""
    write_all([text.rstrip("\n") + "\n"])


def write_all(pieces: Iterable[str], stream: TextIO | None = None) -> None:
    """Print data that is made piece by piece, as it is, on stdout or another stream.

    Raises:
        BadDataError: What stdout leads to cannot be written, such as a file on a full disk.
    """
    stream = stream or sys.stdout
    try:
        stream.writelines(pieces)
        stream.flush()
    except OSError as error:
        # The interpreter flushes the stream once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Of stderr there is nowhere to say so, and a reader that has gone away, such as head, is no error.
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise BadDataError(f"cannot be written: {error.strerror}", file="standard output") from None


def say(text: str) -> None:
    """Print a message for the user, who may be reading it beside the data."""
    write_all([printable(text).rstrip("\n") + "\n"], sys.stderr)


def say_error(error: Exception) -> None:
    """Print what went wrong and where, on stderr."""
    write_all([f"{style('error', 'red', stream=sys.stderr)}: {printable(str(error))}\n"], sys.stderr)


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


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_json(kind: str, data: Iterable[object], **more: object) -> None:
    """Print data in the envelope that every JSON output of ``tickets`` has; ``more`` stands before it.

    Of ``data`` there is one item at a time.
    """

    def pieces() -> Iterator[str]:
        # The text of json.dumps({**head, "data": [*data]}, indent=2), item by item.
        head = {"schema_version": 1, "kind": kind, **more}
        yield f'{json.dumps(head, indent=2, ensure_ascii=False)[:-2]},\n  "data": ['
        separator = ""
        for item in data:
            text = json.dumps(item, indent=2, ensure_ascii=False).replace("\n", f"\n{' ' * 4}")
            yield f"{separator}\n{' ' * 4}{text}"
            separator = ","
        yield "\n  ]\n}\n" if separator else "]\n}\n"

    write_all(STEERING.sub(lambda char: f"\\u{ord(char[0]):04x}", piece) for piece in pieces())


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns; on a terminal the last one is cut to fit, elsewhere nothing is lost."""
    lines = [[single_line(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = terminal_width(sys.stdout) - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    texts = []
    for *cells, last in lines:
        aligned = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        cut = f"{last[: room - 1]}…" if room >= SHORTEST_CUT and len(last) > room else last
        texts.append(GAP.join([*aligned, cut]).rstrip())
    write("\n".join([style(texts[0], "bold"), *texts[1:]]))


def terminal_width(stream: TextIO) -> int:
    """Columns of the terminal of a stream; 0 where it is none, so that nothing is cut."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


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


def write_output(pieces: Iterable[str], output: Path | None, is_protected: Callable[[Path], bool]) -> None:
    """Write a text to the file ``output`` in one step, or to stdout (also ``-``), once all of it is made.

    Args:
        pieces: The text, piece by piece.
        output: The file. What a link leads to is replaced, and the link stays.
        is_protected: Whether a file must stay as it is.

    Raises:
        UsageError: The file cannot be written or is protected.
        BadDataError: What stdout leads to cannot be written.
    """
    if output in (None, Path("-")):
        # Nobody gets one half of a report whose other half fails.
        made = list(pieces)
        # A ticket must not steer a terminal; a file or a pipe gets its text as it is.
        write_all(map(printable, made) if sys.stdout.isatty() else made)
        return
    refuse_protected(output, is_protected)
    try:
        # Before anybody waits for the text.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(output.stat().st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        data = "".join(pieces).encode(errors=ENCODING_ERRORS)
        if output.exists() and not output.is_file():
            # A device or a pipe cannot be replaced.
            output.write_bytes(data)
        else:
            mask = os.umask(0)
            os.umask(mask)
            mode = stat.S_IMODE(output.stat().st_mode) if output.exists() else 0o666 & ~mask
            target = Path(os.path.realpath(output))
            if target.is_symlink():
                # What is a link even now leads back to itself.
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            replace(target, data, mode)
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror or error}", file=str(output)) from None
    say(f"wrote {output}")


def refuse_protected(output: Path, is_protected: Callable[[Path], bool]) -> None:
    """Raise UsageError for a file that must stay as it is, whatever it is called here."""
    if is_protected(Path(os.path.realpath(output))):
        raise UsageError("belongs to the register, and no report is written there", file=str(output))


def summary_room(file: Path) -> int:
    """How many bytes the summary of a workflow's step still takes."""
    with suppress(OSError):
        return max(SUMMARY_LIMIT - file.stat().st_size, 0)
    return SUMMARY_LIMIT


def add_to_summary(file: Path, page: str) -> None:
    """Append a page to a file that a workflow shows as the summary of a step.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        with file.open("a", encoding="utf-8", errors=ENCODING_ERRORS) as stream:
            stream.write(page)
    except OSError as error:
        raise UsageError(f"--summary: cannot be written: {error.strerror}", file=str(file)) from None
