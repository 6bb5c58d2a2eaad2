"""Files at many commits, read by one process of git: no checkout, and no process for each of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from finding_tickets.ground.git import GitError, command, environment

# Folders that are kept in memory: those of one commit are nearly all those of the next.
_TREES = 8192
_FOLDER, _FILE, _PROGRAM, _LINK = "40000", "100644", "100755", "120000"
_MOST_LINKS = 8


class TreeEntry(NamedTuple):
    """What a name stands for in a folder: a file, a folder or something else, by the name of its object."""

    mode: str
    object: str


def read_objects(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of objects by their names; those that this clone does not have are left out."""
    wanted = list(names)
    if not wanted:
        return {}
    with Objects(root) as objects:
        return {name: content for name in wanted if (content := objects.content(name)) is not None}


class Objects(AbstractContextManager["Objects"]):
    """The objects of the repository that ``root`` is in, as long as the context lasts."""

    def __init__(self, root: Path) -> None:
        try:
            self._git = subprocess.Popen(  # noqa: S603 - git with arguments of ours; no shell takes part
                command(root, "cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                # An interrupt from the terminal is for the caller, whose end is git's.
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from None
        self.folder = lru_cache(maxsize=_TREES)(self._folder)
        self.sha256 = cache(self._sha256)

    def __exit__(self, *_: object) -> None:
        """End git."""
        with suppress(BrokenPipeError), self._git:
            pass

    def content(self, name: str) -> bytes | None:
        """The bytes of an object; None for one that this clone does not have."""
        stdin, stdout = cast("IO[bytes]", self._git.stdin), cast("IO[bytes]", self._git.stdout)
        with suppress(BrokenPipeError):
            stdin.write(name.encode() + b"\n")
            stdin.flush()
        # NAME KIND SIZE, or NAME missing
        said = stdout.readline().split()
        if not said:
            raise GitError("git has ended")
        return stdout.read(int(said[2]) + 1)[:-1] if len(said) == 3 else None

    def _sha256(self, name: str) -> str:
        """The SHA-256 of an object's bytes; one that this clone does not have counts as empty."""
        return hashlib.sha256(self.content(name) or b"").hexdigest()

    def _folder(self, name: str) -> Mapping[str, TreeEntry]:
        """What is in a folder, by its names; nothing where this clone does not have it."""
        content = self.content(name) or b""
        digits = len(name) // 2
        found: dict[str, TreeEntry] = {}
        start = 0
        # MODE, a blank, NAME, a zero byte, and the object's name as bytes
        while start < len(content):
            end = content.index(b"\0", start)
            mode, _, called = content[start:end].partition(b" ")
            start = end + 1 + digits
            found[os.fsdecode(called)] = TreeEntry(mode.decode(), content[end + 1 : start].hex())
        return found


@dataclass(frozen=True)
class Snapshot:
    """A folder at a commit; ``tree`` is that of the whole repository, and ``prefix`` leads to the folder."""

    objects: Objects = field(repr=False)
    tree: str
    prefix: str = ""

    def file(self, path: str) -> str | None:
        """The object of a file, or of the file that a link leads to; None where there is no such file."""
        entry = self._entry(path)
        return entry.object if entry and entry.mode in {_FILE, _PROGRAM} else None

    def folder(self, path: str) -> str | None:
        """The object of a folder, itself where the path is empty; None where there is no such folder."""
        entry = self._entry(path)
        return entry.object if entry and entry.mode == _FOLDER else None

    digest = file

    def names(self, folder: str) -> frozenset[str] | None:
        """What is in a folder; None where there is no such folder."""
        tree = self.folder(folder)
        return frozenset(self.objects.folder(tree)) if tree else None

    def link(self, path: str) -> str | None:
        """What stands in a symbolic link; None where there is none."""
        entry = self._entry(path, is_followed=False)
        return (
            os.fsdecode(self.objects.content(entry.object) or b"") if entry and entry.mode == _LINK else None
        )

    def content(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is no such file, or this clone does not have it."""
        name = self.file(path)
        return self.objects.content(name) if name else None

    def files(self, folder: str = "") -> Iterator[tuple[str, str]]:
        """The paths of all files in a folder and below, hidden folders left out, with their objects."""
        tree = self.folder(folder)
        for name, entry in self.objects.folder(tree).items() if tree else ():
            path = f"{folder}/{name}" if folder else name
            if entry.mode == _FOLDER and not name.startswith("."):
                yield from self.files(path)
            elif entry.mode in {_FILE, _PROGRAM}:
                yield path, entry.object

    def _entry(self, path: str, *, is_followed: bool = True) -> TreeEntry | None:
        """What a path leads to; None for nothing, and outside the repository.

        Links on the way are followed, and the last one unless it is what is asked for.
        """
        here = [TreeEntry(_FOLDER, self.tree)]
        waiting = f"{self.prefix}{path}".split("/")[::-1]
        links = 0
        while waiting and here:
            name = waiting.pop()
            if name in {"", "."}:
                continue
            if here[-1].mode != _FOLDER:
                return None
            if name == "..":
                here.pop()
            elif (entry := self.objects.folder(here[-1].object).get(name)) is None:
                return None
            elif entry.mode != _LINK or not (is_followed or waiting):
                here.append(entry)
            else:
                target = os.fsdecode(self.objects.content(entry.object) or b"")
                links += 1
                if links > _MOST_LINKS or target.startswith("/"):
                    return None
                waiting += target.split("/")[::-1]
        return here[-1] if here else None
