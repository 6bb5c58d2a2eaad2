"""Which file of the repository a path that is not there may have been meant to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

from finding_tickets.ground.repository_files import below, known_to_git
from finding_tickets.register.ids import numbers

MOST_GUESSES = 3
MOST_FILES = 50_000
"""How many files are looked at where git does not know them."""
MOST_COMPARED = 500
"""Among more files of one folder or of one name, comparing takes longer than a guess is worth."""


class Nearby:
    """The files of a repository by name and by folder; they are listed once, for the first guess."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def guesses(self, path: str) -> Sequence[str]:
        """The files with the name of ``path`` elsewhere, or with one like it in its folder; likest first."""
        wanted = PurePosixPath(path.replace("\\", "/")).as_posix()
        folder, _, name = wanted.rpartition("/")
        close = get_close_matches(name, _few(self._by_folder.get(folder, ())))
        # What is numbered differently is another one of a series.
        beside = (_joined(folder, each) for each in close if numbers(each) == numbers(name))
        alike = dict.fromkeys([*_few(self._by_name.get(name.casefold(), ())), *beside])
        there = [each for each in alike if (self._root / each).exists()]
        return there if len(there) == 1 else get_close_matches(wanted, there, n=MOST_GUESSES)

    @cached_property
    def _files(self) -> Sequence[str]:
        known = known_to_git(self._root)
        return sorted(islice(below(self._root), MOST_FILES) if known is None else known)

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for file in self._files:
            found[file.rpartition("/")[2].casefold()].append(file)
        return found

    @cached_property
    def _by_folder(self) -> Mapping[str, Iterable[str]]:
        """The names in each folder, those of folders among them."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for file in self._files:
            path = file
            while path:
                path, _, name = path.rpartition("/")
                if name in found[path]:
                    break
                found[path][name] = None
        return found


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _few(found: Iterable[str]) -> Sequence[str]:
    few = list(islice(found, MOST_COMPARED + 1))
    return few if len(few) <= MOST_COMPARED else []
