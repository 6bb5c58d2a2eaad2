"""Places in code as text names them: ``src/a.py:10-20, 31``."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from finding_tickets.markdown.inline import plain
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import LineRange, Location

Lines = tuple[LineRange, ...]

_RANGE = re.compile(r"(?<![\w.])L?(\d{1,9})(?:\s*[-\u2013]\s*L?(\d{1,9}))?(?![\w.]*\w)")
_PATH_AND_LINES = re.compile(r"(?P<path>.+?\.\w+)(?::(?P<lines>[L\d][\dL\s,:\u2013-]*))?")
_FILE = re.compile(
    r"[^\s()]+\.(?:py|pyi|pyx|md|toml|ya?ml|json|cfg|ini|txt|sh|c|cc|cpp|cuh?|h|hpp|rs|go|js|ts|ipynb)"
    r"|[^\s()]+/[^\s()]*"
)


def line_ranges(text: str) -> Lines:
    """The line numbers and ranges in ``text``: ``177-178, 189`` gives two."""
    matches = _RANGE.finditer(text)
    numbers = [(int(match[1]), int(match[2] or match[1])) for match in matches]
    return tuple(LineRange(first=first, last=max(first, last)) for first, last in numbers)


def path_and_lines(text: str) -> tuple[str, Lines]:
    """A path and the lines that may follow it after a colon."""
    match = _PATH_AND_LINES.fullmatch(text)
    return (match["path"], line_ranges(match["lines"] or "")) if match else (text, ())


def location_of(text: Text, name: str | None = None) -> Location | None:
    """The place that ``text``, or ``name`` within it, names; None where it does not look like a path."""
    path, lines = path_and_lines(name or plain(text.raw))
    if not _FILE.fullmatch(path):
        return None
    return Location(raw=text.raw, span=text.span, file=path, lines=lines, symbol=None)


def names(name: str, path: str) -> bool:
    """Whether ``name`` is the end of ``path``: ``ppo.py`` names ``src/agent/ppo.py``."""
    parts = PurePosixPath(name).parts
    return PurePosixPath(path).parts[-len(parts) :] == parts
