"""Adding a page to a file that a workflow shows as the summary of a step."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from finding_tickets.errors import UsageError

LIMIT = 1024**2
"""Bytes that GitHub takes for the summary of a step; of a longer one it shows nothing."""


def room_in(file: Path) -> int:
    """How many bytes a summary still takes."""
    with suppress(OSError):
        return max(LIMIT - file.stat().st_size, 0)
    return LIMIT


def add_to(file: Path, page: str) -> None:
    """Add a page at the end of what the file has.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(page)
    except OSError as error:
        raise UsageError(f"--summary: cannot be written: {error.strerror}", file=str(file)) from None
