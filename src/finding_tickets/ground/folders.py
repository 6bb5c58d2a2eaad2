"""Folders of the cache that are written once: aside, then in one step where they belong.

Processes that use folders of a kind share a lock, and only one that is alone removes any. The lock goes with
its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_WHEN_INPUT_ENDS = """
read -r nothing
for second in 1 2 3; do
    rm -rf "$1"
    [ -e "$1" ] || exit
    sleep 1
done
"""
"""What a killed process was writing may be written on for a moment by git."""
_in_use: dict[Path, int] = {}
"""The locks that this process has, by the folder that the folders of a kind are in."""


def make(folder: Path, write: Callable[[Path], None], most: int) -> None:
    """Have ``write`` fill a folder that becomes ``folder``, unless it is there, whoever else does the same.

    It stays until this process ends, or lets go of all by ``release``. What nobody uses is removed but for
    the ``most`` folders beside it that were used last.

    Raises:
        OSError: There is no room, or what ``write`` raises.
    """
    _use(folder.parent, most)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _aside(folder.parent) as aside:
            files = aside / "files"
            files.mkdir()
            write(files)
            _replace(files, folder)
    # Where nothing can be written, nothing is removed either.
    with suppress(OSError):
        os.utime(folder)


def release() -> None:
    """Use no folder any more that was made so far."""
    while _in_use:
        os.close(_in_use.popitem()[1])


def protect(folder: Path) -> None:
    """Have nobody write the files in a folder by accident."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            file.chmod(file.stat().st_mode & ~0o222)


def _use(folder: Path, most: int) -> None:
    """Have nobody remove what is in a folder, from which too much is removed first if nobody else uses it."""
    if folder in _in_use:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.with_name(f"{folder.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_all_but(folder, most)
        # Where a file system has no locks, nobody is ever alone.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_SH)
    except BaseException:
        os.close(lock)
        raise
    _in_use[folder] = lock


def _remove_all_but(folder: Path, most: int) -> None:
    """Remove the folders that were used longest ago, and those that were never written to their end."""
    found = list(folder.iterdir())
    left = [path for path in found if path.name.startswith(".")]
    made = sorted(set(found).difference(left), key=lambda path: path.stat().st_mtime)
    if old := [*left, *made[:-most]]:
        # A folder that has its name is whole, also when this is killed meanwhile.
        with _aside(folder) as aside:
            for path in old:
                with suppress(FileNotFoundError):
                    path.rename(aside / path.name)


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder that is gone when the block is left, and within seconds where this process is killed."""
    aside = folder / f".{secrets.token_hex(8)}"
    # Whoever is to remove it is there first. Its input ends with this process, for nothing inherits the pipe.
    with subprocess.Popen(  # noqa: S603 - a program of ours
        ["/bin/sh", "-c", _WHEN_INPUT_ENDS, "sh", str(aside)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ):
        try:
            aside.mkdir(mode=0o700)
            yield aside
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _replace(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
