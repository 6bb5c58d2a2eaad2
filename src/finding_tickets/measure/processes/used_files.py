# Every audit event passes through the hook, and pathlib takes long.
# ruff: noqa: PTH100, PTH116, PTH118
"""Note which files Python code opens and imports below some folders.

``note_used_files`` adds a hook for Python's audit events (PEP 578) to this process. Processes that are forked
from it have the hook, too. No event tells of a file that C code opens, that a program opens which is
started anew, or that is only looked for or listed.

Each file is noted at once, when it is first used, so that a process that crashes leaves its notes behind.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

# Where the arguments of an event name the file.
PATH_AT = {"open": 0, "import": 1, "ctypes.dlopen": 0, "os.rename": 1}
MOST_FILES = 20_000
LARGEST_NOTES = 1 << 26


class UsedFile(NamedTuple):
    """A file that was opened, by its absolute path.

    ``size`` and the times of the last modification and of the last change, in nanoseconds, are those from
    before that. All are 0 for a new file.
    """

    path: str
    is_written: bool
    size: int
    modified: int
    changed: int


class UsedFiles(NamedTuple):
    """The files that a process used since it began to, in nanoseconds since 1970."""

    begin: int = 0
    files: tuple[UsedFile, ...] = ()


def note_used_files(notes: Path, folders: Mapping[str, str]) -> None:
    """Write to ``notes`` which files this process opens below ``folders`` from now on.

    The mapping names, for each folder, the one that files are noted as being in: itself, or the one that it
    is a copy of.
    """
    note = _Hook(str(notes), folders).note
    notes.write_text(f"{time.time_ns()}\n", encoding="ascii")
    # Events come by the ten thousand: of a function, Python asks for less than of a method.
    sys.addaudithook(
        lambda event, arguments: event in PATH_AT and note(event, arguments)
    )


def read_used_files(notes: Path) -> UsedFiles:
    """Return what was noted. Lines that the hook did not write are left out: any code can write there."""
    try:
        with notes.open("rb") as stream:
            first, *lines = stream.read(LARGEST_NOTES).split(b"\n")
        begin = int(first)
    except (OSError, ValueError):
        return UsedFiles()
    found = dict[UsedFile, None]()
    for line in lines[:MOST_FILES]:
        with suppress(ValueError, RecursionError):
            match json.loads(line):
                case [
                    str(path),
                    bool(is_written),
                    int(size),
                    int(modified),
                    int(changed),
                ]:
                    found[UsedFile(path, is_written, size, modified, changed)] = None
    return UsedFiles(begin, tuple(found))


class _Hook:
    """Notes each file once when it is read and once when it is written."""

    def __init__(self, notes: str, folders: Mapping[str, str]) -> None:
        self._notes = notes
        self._seen = set[tuple[str, bool]]()
        # Code may name a folder by a path through links, or by the one that they lead to.
        self._folders: dict[str, str] = {}
        for folder, shown in folders.items():
            self._folders[f"{folder}/"] = shown
            self._folders[f"{os.path.realpath(folder)}/"] = shown
        # One may be inside another one.
        self._prefixes = tuple(sorted(self._folders, key=len, reverse=True))

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note the file that an event is about. The event goes on whatever happens here."""
        name = arguments[PATH_AT[event]]
        # An open file may be named by its number, and a module without a file by nothing.
        if not isinstance(name, str | bytes):
            return
        with suppress(OSError, ValueError):
            path = os.path.abspath(os.fsdecode(name))
            if path.startswith(self._prefixes):
                flags = arguments[2] if event == "open" else os.O_RDONLY
                self._note_use(path, flags, is_renamed=event == "os.rename")

    def _note_use(self, path: str, flags: int, *, is_renamed: bool) -> None:
        access = flags & os.O_ACCMODE
        is_emptied = is_renamed or flags & os.O_TRUNC
        if access != os.O_WRONLY and not is_emptied:
            self._note_once(path, is_written=False)
        if access != os.O_RDONLY or flags & os.O_CREAT or is_emptied:
            self._note_once(path, is_written=True)

    def _note_once(self, path: str, *, is_written: bool) -> None:
        if (path, is_written) in self._seen or len(self._seen) >= MOST_FILES:
            return
        size = modified = changed = 0
        try:
            state = os.stat(path)
        except FileNotFoundError:
            # Nothing can be read there.
            if not is_written:
                return
        else:
            if not stat.S_ISREG(state.st_mode):
                return
            size, modified, changed = (
                state.st_size,
                state.st_mtime_ns,
                state.st_ctime_ns,
            )
        self._seen.add((path, is_written))
        prefix = next(each for each in self._prefixes if path.startswith(each))
        shown = os.path.join(self._folders[prefix], path[len(prefix) :])
        line = json.dumps([shown, is_written, size, modified, changed])
        # It is opened each time, because code may close all files of its process.
        notes = os.open(self._notes, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(notes, f"{line}\n".encode())
        finally:
            os.close(notes)
