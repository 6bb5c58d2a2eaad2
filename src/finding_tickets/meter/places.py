"""Name places in code the same way on every machine: relative to the repository or to what is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from traceback import walk_tb


def portable(file: str, root: Path) -> str:
    """A path relative to ``root``, else to the entry of ``sys.path`` it came from; POSIX, never absolute."""
    path = Path(file)
    for base in (root, *sorted(map(Path, filter(None, sys.path)), key=lambda entry: -len(entry.parts))):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.name


def describe(error: BaseException, root: Path) -> str:
    """What an exception says in one line, after the innermost place below ``root`` where it was raised."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    ours = [(file, line) for file, line in frames if Path(file).is_relative_to(root)]
    if isinstance(error, SyntaxError) and error.filename:
        ours.append((error.filename, error.lineno or 1))
    return f"{portable(ours[-1][0], root)}:{ours[-1][1]}: {text}" if ours else text
