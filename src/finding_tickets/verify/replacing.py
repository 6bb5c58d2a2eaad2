"""Writing a file so that whoever reads it finds the old content or the new one, whole."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

# A file that has no name goes away with the process that writes it. Not every system and file system has it.
_NAMELESS: int = getattr(os, "O_TMPFILE", 0)


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``content`` beside ``file``, then put it in its place in one step; a failure leaves nothing.

    Neither does a process that is killed while it writes, where the system has files without a name.
    """
    aside = file.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if not _written_nameless(aside, content, mode):
            _write(aside, content, mode)
        aside.replace(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


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
