"""Places in code as text names them: ``src/a.py:10-20, 31`` and ``SeedSlot.forward()``."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from finding_tickets.documents.inline import code_spans, plain
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import LineRange, Location

Lines = tuple[LineRange, ...]

EXTENSION = (
    r"(?:py|pyi|pyx|md|toml|ya?ml|json|cfg|ini|txt|sh|c|cc|cpp|cuh?|h|hpp|rs|go|js|jsx|ts|tsx|vue|css|ipynb)"
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_RANGE = re.compile(r"(?<![\w.])L?(\d{1,9})(?:\s*(?:[-\u2013\u2014]|\.\.|\bto\b)\s*L?(\d{1,9}))?(?![\w.]*\w)")
_ASIDE = re.compile(r"\([^()]*\)")
_LINES_ALONE = re.compile(r"\((?:\s|[\d,;~&\u2013-]|lines?|and|L(?=\d))*\)", re.IGNORECASE)
_PATH_AND_LINES = re.compile(r"(?P<path>.+?\.\w+)(?::(?P<lines>[L\d~][\dL\s,:~\u2013-]*))?")
_FILE = re.compile(rf"[^\s()]+\.{EXTENSION}|[^\s()]+/[^\s()]*")
_FILE_IN_PROSE = re.compile(
    rf"(?<![^\s(`])[^\s()`,;:]+(?:\.{EXTENSION}\b|/(?=[\s,;)`]|$))(?::[L\d][\dL,\u2013-]*(?<![,-]))?"
)
_NAME = re.compile(r"(?:(?:async )?def |class )?([A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*)(?:\(\))?")
_LOOKS_LIKE_CODE = re.compile(r"[._(]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_BETWEEN_NAMES = re.compile(r"\s*(?:[,;&+/]|\band\b)\s*")


def line_ranges(text: str) -> Lines:
    """The line numbers and ranges in ``text``: ``177-178, 189 (2 calls)`` gives two.

    What stands in brackets counts where it is nothing but lines.
    """
    if not text:
        return ()
    bare = _ASIDE.sub(
        lambda match: match[0] if _LINES_ALONE.fullmatch(match[0]) else " ", _DATE.sub("", text)
    )
    numbers = [(int(match[1]), int(match[2] or match[1])) for match in _RANGE.finditer(bare)]
    return tuple(LineRange(first=first, last=max(first, last)) for first, last in numbers)


def path_and_lines(text: str) -> tuple[str, Lines]:
    """A path and the lines that may follow it after a colon; a remark beside the path is left out."""
    match = _PATH_AND_LINES.fullmatch(text)
    if match is None and (found := _FILE_IN_PROSE.search(text)):
        text = found[0]
        match = _PATH_AND_LINES.fullmatch(text)
    return (match["path"], line_ranges(match["lines"] or "")) if match else (text, ())


def is_path(text: str) -> bool:
    """Whether a text looks like the path of a file or folder, with or without lines."""
    return _FILE.fullmatch(path_and_lines(text)[0]) is not None


def paths_in_prose(text: str) -> list[tuple[int, int]]:
    """Where the paths stand in a text without backticks, as offsets of characters."""
    return [match.span() for match in _FILE_IN_PROSE.finditer(text)]


def location_of(text: Text, name: str | None = None) -> Location | None:
    """The place that ``text``, or ``name`` within it, names; None where it does not look like a path."""
    path, lines = path_and_lines(name or plain(text.raw))
    if not _FILE.fullmatch(path):
        return None
    return Location(raw=text.raw, span=text.span, file=path, lines=lines, symbol=None, symbols=())


def symbol_names(raw: str) -> tuple[str, ...]:
    """The names in what is written of functions and classes, dotted as they stand, without brackets.

    Names are what stands in backticks; without any, the pieces of the text that look like code.
    """
    data = raw.encode()
    spans = code_spans(data, 0, len(data))
    texts = [data[start:end].decode() for start, end in spans] if spans else [raw]
    pieces = (
        piece for text in texts for piece in _BETWEEN_NAMES.split(_ARGUMENTS.sub("()", text).strip()) if piece
    )
    names = (_NAME.fullmatch(piece) for piece in pieces if spans or _LOOKS_LIKE_CODE.search(piece))
    return tuple(dict.fromkeys(name[1] for name in names if name))


def names(name: str, path: str) -> bool:
    """Whether ``name`` is the end of ``path``: ``ppo.py`` names ``src/agent/ppo.py``."""
    parts = PurePosixPath(name).parts
    return PurePosixPath(path).parts[-len(parts) :] == parts
