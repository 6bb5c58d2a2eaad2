"""The source lines that sites name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

LARGEST = 4 << 20
"""Bytes of the largest file that is looked into: source is smaller."""


class Sources:
    """Lines of files below ``root``, each file read once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lines = lru_cache(maxsize=64)(self._read)

    def line(self, file: str, number: int) -> str:
        """The line ``number`` (from 1) of a file without the blanks around it; empty where there is none."""
        lines = self._lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def _read(self, file: str) -> tuple[str, ...]:
        try:
            path = (self._root / file).resolve()
            # What a site names may be anything: a library's file, or `<string>`.
            if not path.is_relative_to(self._root) or path.stat().st_size > LARGEST:
                return ()
            return tuple(path.read_text(encoding="utf-8", errors="replace").split("\n"))
        except (OSError, ValueError):
            return ()


def no_line(file: str, number: int) -> str:  # noqa: ARG001 - stands in for ``Sources.line``
    """Empty: for code as it was at another revision or before it changed."""
    return ""
