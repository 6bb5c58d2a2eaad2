"""Creating files that must not exist yet, all of them or none."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path


def create(root: Path, texts: Mapping[str, str]) -> list[Path]:
    """Create each file, with the folders above it, by its path from ``root``.

    Two processes that create the same file cannot both succeed, and neither overwrites anything.

    Raises:
        FileExistsError: A file is there already; those created before it are removed again.
        OSError: A file cannot be written; likewise.
    """
    created: list[Path] = []
    try:
        for name, text in texts.items():
            path = root / name
            _make_folder(path.parent)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                created.append(path)
                file.write(text)
    except OSError:
        for path in created:
            path.unlink()
        raise
    return created


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it; a file of that name is in the way for good, unlike a taken ID."""
    if folder.is_file():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    folder.mkdir(parents=True, exist_ok=True)
