"""Files that commands write for people: a report, and the summary of a workflow's step."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.cli.output import say, write_all
from finding_tickets.errors import UsageError
from finding_tickets.ground.files import replace
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE
from finding_tickets.report.text import printable

if TYPE_CHECKING:
    from finding_tickets.register.load import Register

# Bytes that GitHub takes for the summary of a step; of a longer one it shows nothing.
SUMMARY_LIMIT = 1024**2


def files_to_protect(
    register: Register, files: Iterable[str]
) -> Callable[[Path], bool]:
    """Return a test for paths that no report may overwrite: the register's ``files`` and its evidence."""
    known = {CONFIG_FILE, PROJECT_FILE, *files}
    folders = (register.config.evidence, register.config.templates)

    def is_protected(file: Path) -> bool:
        if not file.is_relative_to(register.root):
            return False
        place = file.relative_to(register.root)
        return place.as_posix() in known or any(map(place.is_relative_to, folders))

    return is_protected


def write_output(
    pieces: Iterable[str], output: Path | None, is_protected: Callable[[Path], bool]
) -> None:
    """Write a text to the file ``output`` in one step, or to stdout (also ``-``), once all of it is made.

    What a link leads to is replaced, and the link stays.
    """
    if output in (None, Path("-")):
        # If the second half of a report fails, the first half is not printed.
        write_all(list(pieces))
        return
    refuse_protected(output, is_protected)
    try:
        mask = os.umask(0)
        os.umask(mask)
        mode = stat.S_IFREG | 0o666 & ~mask
        # Checked before the text is made. A link that leads back to itself is an error here.
        with suppress(FileNotFoundError):
            mode = output.stat().st_mode
        # What is written to a file may be printed from there.
        data = "".join(map(printable, pieces)).encode()
        if stat.S_ISREG(mode):
            replace(Path(os.path.realpath(output)), data, stat.S_IMODE(mode))
        else:
            # A device or a pipe cannot be replaced.
            output.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"cannot write the report: {error.strerror or error}", file=str(output)
        ) from None
    say(f"wrote {output}")


def refuse_protected(output: Path, is_protected: Callable[[Path], bool]) -> None:
    """Raise UsageError for a file that must stay as it is, whatever it is called here."""
    if is_protected(Path(os.path.realpath(output))):
        raise UsageError(
            "is a file of the register, which no report may replace", file=str(output)
        )


def summary_room(file: Path) -> int:
    """Return the number of bytes that the summary of a workflow's step still takes."""
    with suppress(OSError):
        return max(SUMMARY_LIMIT - file.stat().st_size, 0)
    return SUMMARY_LIMIT


def add_to_summary(file: Path, page: str) -> None:
    """Append a page to a file that a workflow shows as the summary of a step."""
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(printable(page))
    except OSError as error:
        raise UsageError(
            f"--summary: cannot be written: {error.strerror}", file=str(file)
        ) from None
