"""Folders of the cache that are written once: aside, then in one step where they belong."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from finding_tickets.register.cache import cache_folder

TOKEN = f"{os.getpid()}-{secrets.token_hex(8)}"
"""At the end of the names of what this process has not finished writing."""
_ABANDONED_SECONDS = 24 * 3600.0
"""After this time nobody is still writing a folder."""
_PATIENCE_SECONDS = 3.0


def make(folder: Path, write: Callable[[Path], None], most: int) -> None:
    """Have ``write`` fill a folder that becomes ``folder``, whoever else does the same.

    Of the folders beside it the ``most`` that were used last are kept.

    Raises:
        OSError: There is no room, or what ``write`` raises.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:12]}.", suffix=f".{TOKEN}"))
    try:
        files = aside / "files"
        files.mkdir()
        write(files)
        _replace(files, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _forget_all_but(folder.parent, most)


def forget(token: str) -> None:
    """Remove what a process left unfinished that was killed, which git may still have been writing."""
    cache = cache_folder()
    if cache is None:
        return
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := list(cache.glob(f"*/.*.{token}"))) and time.monotonic() < deadline:
        for aside in left:
            shutil.rmtree(aside, ignore_errors=True)


def protect(folder: Path) -> None:
    """Have nobody write the files in a folder by accident."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            file.chmod(file.stat().st_mode & ~0o222)


def _replace(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _forget_all_but(folder: Path, most: int) -> None:
    """Remove the folders that were used longest ago, and those that were never written to their end."""
    used = {path: _last_used(path) for path in folder.iterdir()}
    made = [path for path in used if not path.name.startswith(".")]
    left = [path for path in used if path not in made and used[path] < time.time() - _ABANDONED_SECONDS]
    for old in (*sorted(made, key=used.__getitem__)[:-most], *left):
        shutil.rmtree(old, ignore_errors=True)


def _last_used(folder: Path) -> float:
    """In seconds since 1970; what another process has taken away meanwhile is not old."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return math.inf
