"""The code that tickets speak of, as it is in the repository's work tree."""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath

from finding_tickets.register.root import is_repository

MOST_BYTES = 2 * 1024**2
"""A larger file is no source code that people quote."""

_FILES_KEPT = 128
_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//).*$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LAST_COMMA = re.compile(r",(?=[)\]}])")


class WorkTree:
    """The files below a register's root; a bare folder of documents holds no code."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.has_code = is_repository(root)
        self.inside = cache(self._inside)
        self.exists = cache(self._exists)
        self.at_home = cache(self._at_home)
        self.line_count = cache(self._line_count)
        self._text = lru_cache(_FILES_KEPT)(self._read)
        self._lines = lru_cache(_FILES_KEPT)(
            lambda path: frozenset(map(squeezed, (self._text(path) or "").splitlines()))
        )
        self._squeezed = lru_cache(_FILES_KEPT)(lambda path: squeezed(self._text(path) or ""))

    def _inside(self, path: str) -> bool:
        """Whether a path, taken from the root, stays in the repository, links followed."""
        try:
            # Unlike Path.resolve, this raises nothing where links lead in a circle.
            return Path(os.path.realpath(self.root / path)).is_relative_to(self.root)
        except (OSError, ValueError):
            return False

    def _exists(self, path: str) -> bool:
        """Whether a file or folder of the repository has this path."""
        try:
            return self.inside(path) and (self.root / path).exists()
        except (OSError, ValueError):
            return False

    def _at_home(self, path: str) -> str | None:
        """The path from the root of a file that an absolute path names on somebody's machine.

        The longest end of the path that is a file here, in a folder; None where there is none.
        """
        parts = re.split(r"[\\/]+", path.strip("\\/"))
        ends = ("/".join(parts[first:]) for first in range(1, len(parts) - 1))
        return next((end for end in ends if self.exists(end) and (self.root / end).is_file()), None)

    def _line_count(self, path: str) -> int | None:
        """How many lines a file has; None where it is no text."""
        text = self._text(path)
        return None if text is None else len(text.splitlines())

    def holds(self, path: str, line: str) -> bool:
        """Whether a file has a line of code somewhere, however it is spaced, wrapped and commented."""
        wanted = squeezed(line)
        return wanted in self._lines(path) or wanted in self._squeezed(path)

    def _read(self, path: str) -> str | None:
        file = self.root / path
        try:
            if not self.inside(path) or not file.is_file() or file.stat().st_size > MOST_BYTES:
                return None
            return file.read_bytes().decode()
        except (OSError, ValueError):
            return None


def is_absolute(path: str) -> bool:
    """Whether a path begins at the root of a disk or in somebody's home."""
    windows = PureWindowsPath(path)
    return PurePosixPath(path).is_absolute() or path.startswith("~/") or bool(windows.drive and windows.root)


def squeezed(code: str) -> str:
    """Code without white space, comments and the commas that wrapping adds, so that it can be compared."""
    return _LAST_COMMA.sub("", _SPACE.sub("", _COMMENT.sub("", code)))
