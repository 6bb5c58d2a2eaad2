"""Writing a file so that whoever reads it finds the old content or the new one, whole."""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

# A file that has no name goes away with the process that writes it. Not every system and file system has it.
_NAMELESS: int = getattr(os, "O_TMPFILE", 0)
_UNFINISHED = re.compile(r"\.(?P<process>[1-9][0-9]*)-[0-9a-f]{16}\.part")
_ABANDONED_SECONDS = 2.0
"""After this time nobody is still writing, not even a process of another machine with the same files."""


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``content`` beside ``file``, then put it in its place in one step; a failure leaves nothing.

    Neither does a process that is killed while it writes, where the system has files without a name. What
    one has left nevertheless is removed.
    """
    _sweep(file.parent)
    aside = file.with_name(f".{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        if not _written_nameless(aside, content, mode):
            _write(aside, content, mode)
        aside.replace(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _sweep(folder: Path) -> None:
    """Remove the unfinished files of processes that are gone."""
    latest = time.time() - _ABANDONED_SECONDS
    for file in folder.glob(".*.part"):
        ours = _UNFINISHED.fullmatch(file.name)
        with suppress(FileNotFoundError):
            if ours and file.lstat().st_mtime < latest and not _is_running(int(ours["process"])):
                file.unlink()


def _is_running(process: int) -> bool:
    """Whether there is such a process; it may be another user's."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _write(file: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, mode)
        stream.write(content)


def _written_nameless(file: Path, content: bytes, mode: int) -> bool:
    """Write a file that gets its name when it is whole; False where there is nothing of the kind."""
    if not _NAMELESS:
        return False
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            descriptor = os.open(".", _NAMELESS | os.O_WRONLY, 0o600, dir_fd=folder)
        except OSError:
            return False
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            try:
                # With folders given, the link in /proc is followed (linkat with AT_SYMLINK_FOLLOW).
                os.link(f"/proc/self/fd/{descriptor}", file.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError:
                return False  # there is no /proc
    finally:
        os.close(folder)
    return True
