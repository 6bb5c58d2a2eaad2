"""Finding the Markdown files of a register and reading their bytes; what is refused is reported."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from finding_tickets.model.problem import Level, Problem

SUFFIX = ".md"


def markdown_files(root: Path, folders: Iterable[Path], problems: list[Problem]) -> Iterator[Path]:
    """Every Markdown file below ``folders``, each once, in the order of their paths.

    Hidden folders are left out. Links that leave ``root``, linked folders and folders that cannot be read are
    reported.
    """
    seen: set[Path] = set()
    for folder in folders:
        if not folder.is_dir():
            problems.append(_problem(root, folder, "no-folder", Level.WARNING, "there is no such folder"))
            continue
        for path in _below(root, folder, problems):
            if path not in seen and _is_inside(root, path, problems):
                seen.add(path)
                yield path


def read_file(root: Path, path: Path, problems: list[Problem]) -> bytes | None:
    """The bytes of a file; None where it cannot be read, which is reported."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            problems.append(_problem(root, path, "unreadable", Level.ERROR, "not a regular file"))
            return None
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        problems.append(_problem(root, path, "unreadable", Level.ERROR, reason))
        return None


def relative(root: Path, path: Path) -> str:
    """A path as problems and records name it: from the root, with forward slashes."""
    return path.relative_to(root).as_posix()


def _below(root: Path, folder: Path, problems: list[Problem]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        reason = f"cannot be read: {error.strerror}"
        problems.append(_problem(root, Path(error.filename), "unreadable", Level.ERROR, reason))

    for directory, names, files in os.walk(folder, onerror=refuse):
        here = Path(directory)
        for name in sorted(name for name in names if (here / name).is_symlink()):
            message = "a linked folder is not searched"
            problems.append(_problem(root, here / name, "linked-folder", Level.NOTE, message))
        names[:] = sorted(name for name in names if not name.startswith("."))
        yield from (here / name for name in sorted(files) if name.lower().endswith(SUFFIX))


def _is_inside(root: Path, path: Path, problems: list[Problem]) -> bool:
    if path.resolve().is_relative_to(root):
        return True
    message = "the link leaves the repository"
    problems.append(_problem(root, path, "outside-repository", Level.ERROR, message))
    return False


def _problem(root: Path, path: Path, rule: str, level: Level, message: str) -> Problem:
    return Problem(level=level, rule=rule, file=relative(root, path), line=1, message=message)
