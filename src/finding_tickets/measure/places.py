"""Name places in code the same way on every machine: relative to the repository or to what is installed."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from traceback import walk_tb

TOOL = [Path(__file__).parents[2] / package for package in ("finding_tickets", "simcuda")]
# Says that the process is in a sandbox.
CONTAINED = "TICKETS_CONTAINED"
INSTALLED = {"site-packages", "dist-packages"}


def belongs_to(root: Path, file: Path) -> bool:
    """Whether a file is the repository's own: not part of this tool, nor of an environment kept there."""
    if not file.is_relative_to(root) or any(file.is_relative_to(package) for package in TOOL):
        return False
    return INSTALLED.isdisjoint(file.relative_to(root).parts)


def portable(file: str, root: Path) -> str:
    """A POSIX path relative to ``root``, or else to where the file is installed; never absolute."""
    path = Path(file)
    if belongs_to(root, path):
        return path.relative_to(root).as_posix()
    # The longest entry gives the name by which the file is imported.
    entries = [Path(entry) for entry in sys.path if entry and path.is_relative_to(entry)]
    longest = max(entries, key=lambda entry: len(entry.parts), default=path.parent)
    return path.relative_to(longest).as_posix()


def describe(error: BaseException, *roots: Path) -> str:
    """An exception in one line: its place, its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if os.strerror(errno.EROFS) in text and CONTAINED in os.environ:
        text += " (the sandbox lets code write to the folder for temporary files alone)"
    return ": ".join(filter(None, (place(error, *roots), text)))


def place(error: BaseException, *roots: Path) -> str:
    """The innermost line of the repository's own code that led to an exception; empty if none did.

    The repository may have several roots: its work tree, and its files at a revision.
    """
    # A syntax error has no frame in the file that it is about.
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 1))
    ours = [(root, file, line) for file, line in frames for root in roots if belongs_to(root, Path(file))]
    root, file, line = ours[-1] if ours else (Path(), "", 0)
    return f"{portable(file, root)}:{line}" if ours else ""


def is_out_of_host_memory(error: BaseException) -> bool:
    """Whether this process ran out of memory, which says nothing about the device."""
    return isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
