"""Delivering a text that is made piece by piece: whole, to a file or to stdout, or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from finding_tickets.cli.output import say, write_all
from finding_tickets.errors import UsageError
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config
from finding_tickets.report.text import printable

IN_MEMORY = 16 * 1024**2
"""Bytes of a text that is not delivered yet; a longer one waits in a temporary file."""

STDOUT = Path("-")
_BLOCK = 1024**2
# A path whose bytes are no UTF-8 is a text all the same.
_ERRORS = "backslashreplace"


def deliver(pieces: Iterable[str], output: Path | None, is_kept: Callable[[Path], bool]) -> None:
    """Write a text to the file ``output`` in one step, or to stdout (also ``-``) once all of it is made.

    ``is_kept`` says of a file that nothing may be written there.

    Raises:
        UsageError: The file cannot be written, or is to be kept.
        BadDataError: What stdout leads to cannot be written.
    """
    if output == STDOUT:
        output = None
    if output is not None:
        with _errors_of(output):
            _check(output, is_kept)
    # Nobody gets one half of a report whose other half turns out to be impossible.
    with tempfile.SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", errors=_ERRORS, newline="") as made:
        made.writelines(pieces)
        made.seek(0)
        blocks = iter(lambda: made.read(_BLOCK), "")
        if output is None:
            # What tickets say can steer no terminal; a file or pipe gets it as it is.
            write_all(map(printable, blocks) if sys.stdout.isatty() else blocks)
        else:
            _save(blocks, output)
            say(f"wrote {output}")


def kept_by(root: Path, config: Config, paths: Iterable[str]) -> Callable[[Path], bool]:
    """Whether a file is one that a register is made of; ``paths`` are its documents and what is unread."""
    files = {CONFIG_FILE, PROJECT_FILE, *paths}
    folders = (config.evidence, config.templates)

    def is_kept(file: Path) -> bool:
        if not file.is_relative_to(root):
            return False
        place = file.relative_to(root)
        return place.as_posix() in files or any(map(place.is_relative_to, folders))

    return is_kept


def refuse_kept(output: Path, is_kept: Callable[[Path], bool]) -> None:
    """Raise UsageError for a file that is to stay as it is, whatever it is called here."""
    if is_kept(Path(os.path.realpath(output))):
        raise UsageError("belongs to the register, and no report is written there", file=str(output))


def _check(output: Path, is_kept: Callable[[Path], bool]) -> None:
    """Say what is wrong with an output before anybody waits for what goes there."""
    refuse_kept(output, is_kept)
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(output.stat().st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))


def _save(blocks: Iterable[str], output: Path) -> None:
    with _errors_of(output), _opened(output) as stream:
        stream.writelines(blocks)


@contextmanager
def _errors_of(output: Path) -> Iterator[None]:
    """Turn what the file system refuses into a message that names the file."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror or error}", file=str(output)) from None


@contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    """A stream into a device, or into a file that takes the place of ``file`` once all went well."""
    if file.exists() and not file.is_file():
        with file.open("w", encoding="utf-8", errors=_ERRORS, newline="") as stream:
            yield stream
        return
    # What a link leads to is replaced, and the link stays one.
    file = file.resolve()
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".report.")
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors=_ERRORS, newline="") as stream:
            yield stream
        aside.chmod(_mode(file))
        aside.replace(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _mode(file: Path) -> int:
    """The mode that the file has, or that a new one would get."""
    if file.exists():
        return stat.S_IMODE(file.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
