"""The code that tickets speak of, as it is in the repository's work tree."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath

from finding_tickets.ground.git import files_below, repository_files
from finding_tickets.register.config import is_repository
from finding_tickets.register.new import numbers

# A larger file is no source code that people quote.
MOST_BYTES = 2 * 1024**2
# How many files are looked at where git does not know them.
MOST_FILES = 50_000
# How much alike names have to be for a guess, and among how many it is made.
LEAST_LIKENESS, MOST_COMPARED = 0.8, 2_000


class WorkTree:
    """The files below a register's root; a bare folder of documents holds no code."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.has_code = is_repository(root)
        # Many tickets cite the same few files. None stands for a file without text.
        self.line_count = lru_cache(self._count_lines)

    def inside(self, path: str) -> bool:
        """Return True if a path, taken from the root, stays in the repository, links followed."""
        try:
            # Unlike Path.resolve, this raises nothing where links lead in a circle.
            return Path(os.path.realpath(self.root / path)).is_relative_to(self.root)
        except (OSError, ValueError):
            return False

    def exists(self, path: str) -> bool:
        """Return True if a file or folder of the repository has this path."""
        # Unlike Path.exists, this raises nothing for a path that no file can have.
        return self.inside(path) and os.path.exists(self.root / path)  # noqa: PTH110

    def at_home(self, path: str) -> str | None:
        """Return the longest end of an absolute path that is a file in a folder here."""
        parts = re.split(r"[\\/]+", path.strip("\\/"))
        ends = ("/".join(parts[first:]) for first in range(1, len(parts) - 1))
        return next(
            (end for end in ends if self.exists(end) and (self.root / end).is_file()),
            None,
        )

    def _count_lines(self, path: str) -> int | None:
        file = self.root / path
        try:
            if (
                not self.inside(path)
                or not file.is_file()
                or file.stat().st_size > MOST_BYTES
            ):
                return None
            return len(file.read_bytes().decode().splitlines())
        except (OSError, ValueError):
            return None

    def files_like(self, path: str) -> str | None:
        """Return a hint with the files that a path which does not exist may have been meant to be."""
        name = PurePosixPath(path).name
        found = [known for known in self._paths if PurePosixPath(known).name == name]
        if len(found) != 1:
            # What is numbered differently is another one of a series.
            alike = found or [
                known for known in self._paths if numbers(known) == numbers(path)
            ]
            found = get_close_matches(
                path, alike[:MOST_COMPARED], cutoff=LEAST_LIKENESS
            )
        found = [each for each in found if self.exists(each)]
        return f"did you mean {' or '.join(found)}?" if found else None

    @cached_property
    def _paths(self) -> Sequence[str]:
        """The files of the repository."""
        files = repository_files(self.root)
        return sorted(
            islice(files_below(self.root), MOST_FILES) if files is None else files
        )


def is_absolute(path: str) -> bool:
    """Return True if a path begins at the root of a disk or in a home folder."""
    windows = PureWindowsPath(path)
    return (
        PurePosixPath(path).is_absolute()
        or path.startswith("~/")
        or bool(windows.drive and windows.root)
    )
