"""What was measured, kept in the user's cache folder by all that it depends on, so that it is measured once.

Which files a measurement depends on is known only after it: those that it imported. So what it depends on
beside code makes a key, under which measurements are kept with the files that each rests on; a commit that
has the same ones has the same result. One that came to nothing rests on all that its code says it imports.
Each also rests on what is not there: code can try to import a file, and do without.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pydantic import ValidationError

from finding_tickets.ground.cache import cache_folder
from finding_tickets.ground.objects import Snapshot
from finding_tickets.ground.replacing import replace
from finding_tickets.history.states import Moment
from finding_tickets.model.record import Record
from finding_tickets.verify.imports import SOURCES

FOLDER = "history"
FORM = 3
"""Of what is kept; another form has other keys."""
_KEEP = 50_000
"""Measurements that are kept, those used last; each takes a kilobyte or two."""
_SUFFIX = ".json.z"


class Kept(Record):
    """A measurement and what it rests on, beside what its ``key`` stands for.

    ``files`` are the objects of files by their paths, and ``absent`` are names by the folder in which nothing
    has them. ``limits`` stand for what else a measurement that came to nothing may have come from.
    """

    key: str
    moment: Moment
    files: dict[str, str]
    absent: dict[str, tuple[str, ...]]
    limits: str = ""

    def is_of(self, snapshot: Snapshot, limits: str) -> bool:
        """Whether measuring a commit within such limits would be the same measurement again."""
        if self.limits not in {"", limits}:
            return False
        same = all(snapshot.file(path) == name for path, name in self.files.items())
        return same and not any(snapshot.has_any(*names) for names in self.absent.items())


def resting_on(key: str, paths: Iterable[str], snapshot: Snapshot, moment: Moment, limits: str = "") -> Kept:
    """A measurement that rests on what a commit has at these paths, and on what it does not have."""
    objects = {path: snapshot.file(path) for path in sorted(set(paths))}
    files = {path: name for path, name in objects.items() if name}
    missing = {_missing(path, snapshot) for path in objects if path not in files}
    absent = {
        folder: tuple(name for _, name in there) for folder, there in groupby(sorted(missing), itemgetter(0))
    }
    return Kept(key=key, moment=moment, files=files, absent=absent, limits=limits)


def _missing(path: str, snapshot: Snapshot) -> tuple[str, str]:
    """The folder and the name of the first part of a path that is not there.

    A folder of sources says nothing by being there.
    """
    *folders, name = path.split("/")
    depth = 1 if folders[:1] == [SOURCES] else 0
    while depth < len(folders) and snapshot.folder("/".join(folders[: depth + 1])):
        depth += 1
    return "/".join(folders[:depth]), [*folders, name][depth]


@cache
def installed() -> str:
    """A digest of the packages that are installed: code that cannot be imported may have lacked one."""
    folders = (Path(entry) for entry in sys.path if entry)
    names = (each.name for folder in folders if folder.is_dir() for each in folder.glob("*.dist-info"))
    return _digest(" ".join(sorted(names)))


class Store:
    """What is kept; without a cache folder nothing is, beyond this run."""

    def __init__(self) -> None:
        cache_of_user = cache_folder()
        self._folder = cache_of_user / FOLDER if cache_of_user else None
        self._files: dict[str, list[str]] = {}
        self._known: dict[str, list[Kept]] = {}
        with suppress(OSError):
            for name in os.listdir(self._folder) if self._folder else ():  # noqa: PTH208 - names are all it takes
                if name.endswith(_SUFFIX):
                    self._files.setdefault(name.partition("-")[0], []).append(name)

    def of(self, key: str) -> list[Kept]:
        """All measurements that depend on the same beside code."""
        if key not in self._known:
            self._known[key] = [
                kept for name in sorted(self._files.get(key, ())) if (kept := self._read(name))
            ]
        return self._known[key]

    def learn(self, kept: Kept) -> None:
        """Know a measurement as long as this lasts."""
        self.of(kept.key).append(kept)

    def add(self, kept: Kept) -> None:
        """Know a measurement, and keep it."""
        self.learn(kept)
        if self._folder:
            name = f"{kept.key}-{_digest(kept.model_dump_json(exclude={'moment'}))[:16]}{_SUFFIX}"
            with suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True)
                replace(self._folder / name, zlib.compress(kept.model_dump_json().encode()))

    def forget(self) -> None:
        """Remove what was used longest ago, where there is much."""
        if self._folder is None:
            return
        with suppress(OSError):
            files = {file: file.stat().st_mtime for file in self._folder.glob(f"*{_SUFFIX}")}
            for old in sorted(files, key=files.__getitem__)[:-_KEEP]:
                old.unlink(missing_ok=True)

    def _read(self, name: str) -> Kept | None:
        if self._folder is None:
            return None
        file = self._folder / name
        try:
            kept = Kept.model_validate_json(zlib.decompress(file.read_bytes()))
            os.utime(file)
        except (OSError, zlib.error, ValidationError):
            return None
        return kept


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
