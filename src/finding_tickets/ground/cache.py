"""The user's cache folder: what the tool can make again, by kind and name, and how old things go.

A file or a folder of the cache is written aside and then put in its place in one step. Processes that use
folders of a kind share a lock, and only one that is alone removes any. The lock goes with its process,
however that ends.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache as once
from pathlib import Path

from finding_tickets.ground.files import replace

# What a killed process was writing may be written on for a moment by git.
_REMOVE_WHEN_INPUT_ENDS = """
read -r nothing
for second in 1 2 3; do
    rm -rf "$1"
    [ -e "$1" ] || exit
    sleep 1
done
"""
# The locks that this process has, by the folder that the folders of a kind are in.
_locks: dict[Path, int] = {}


def cache_folder() -> Path | None:
    """Return the tool's folder in ``$XDG_CACHE_HOME`` or ``~/.cache``; None for users without a home."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "finding-tickets"


def read_entry(kind: str, name: str) -> bytes | None:
    """Return a file of the cache, which then counts as used; None if it is missing."""
    if folder := cache_folder():
        with suppress(OSError):
            content = (folder / kind / name).read_bytes()
            # A cache that can only be read is read.
            with suppress(OSError):
                os.utime(folder / kind / name)
            return content
    return None


def write_entry(kind: str, name: str, content: bytes, keep: int) -> None:
    """Write a file of the cache, and keep the ``keep`` files of its kind used last. Ignore failures."""
    if file := entry_path(kind, name, keep):
        with suppress(OSError):
            replace(file, content)


def entry_path(kind: str, name: str, keep: int) -> Path | None:
    """Return the place of a file of the cache, which counts as used then; None where there can be none.

    Of the other files of its kind, those that were used last are kept, ``keep`` in all.
    """
    cache = cache_folder()
    if cache is None:
        return None
    folder, file = cache / kind, cache / kind / name
    with suppress(OSError):
        if file.exists():
            os.utime(file)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for old in _oldest(folder.iterdir(), keep - 1):
                old.unlink(missing_ok=True)
    return file


def make_folder(kind: str, name: str, write: Callable[[Path], None], keep: int) -> Path:
    """Return a folder of the cache. ``write`` fills it if it is missing; other processes may do the same.

    It stays until this process ends. Unused folders of the kind are removed, except the ``keep`` most recent
    ones. Its files cannot be written by accident.

    Raises:
        OSError: There is no room, or what ``write`` raises.
    """
    cache = cache_folder()
    if cache is None or not (cache / kind / name).is_dir():
        cache = folder_for(kind)
    kept, folder = cache / kind, cache / kind / name
    if kept not in _locks:
        _lock(kept, keep)
    if not folder.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        with _aside(kept) as aside:
            files = aside / "files"
            files.mkdir()
            write(files)
            for file in files.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    file.chmod(file.stat().st_mode & ~0o222)
            try:
                files.rename(folder)
            except OSError:
                # Another process may have made it meanwhile.
                if not folder.is_dir():
                    raise
    # Where nothing can be written, nothing is removed either.
    with suppress(OSError):
        os.utime(folder)
    return folder


def folder_for(kind: str) -> Path:
    """Return the cache folder, or a temporary one if the kind cannot be written there."""
    if cache := cache_folder():
        with suppress(OSError):
            (cache / kind).mkdir(parents=True, exist_ok=True)
            if os.access(cache / kind, os.W_OK):
                return cache
    return _temporary()


@once
def _temporary() -> Path:
    folder = ExitStack()
    atexit.register(folder.close)
    return folder.enter_context(_aside(Path(tempfile.gettempdir())))


def _oldest(paths: Iterable[Path], keep: int) -> list[Path]:
    """Return all but the ``keep`` paths used last."""
    return sorted(paths, key=lambda path: path.stat().st_mtime)[:-keep]


def _lock(folder: Path, keep: int) -> None:
    """Keep others from removing what is in a folder; if no other process uses it, remove what is too much."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locks[folder] = os.open(f"{folder}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return
    # Not to be alone is one of the errors.
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = set(folder.iterdir())
        # A hidden folder was never written to its end.
        unfinished = {path for path in found if path.name.startswith(".")}
        if old := [*unfinished, *_oldest(found - unfinished, keep)]:
            # A folder that has its name is whole, also when this process is killed meanwhile.
            with _aside(folder) as aside:
                for path in old:
                    with suppress(FileNotFoundError):
                        path.rename(aside / path.name)
    # Where a file system has no locks, no process counts as alone.
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH)


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder that is gone when the block is left, and within seconds where this process is killed."""
    aside = folder / f".{secrets.token_hex(8)}"
    # The process that removes it starts first. Its input ends with this process: nothing inherits the pipe.
    with subprocess.Popen(  # noqa: S603 - a program of ours
        ["/bin/sh", "-c", _REMOVE_WHEN_INPUT_ENDS, "sh", str(aside)],
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
