"""The files of a register: finding them, reading their bytes, and knowing those that have not changed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Generic, NamedTuple, TypeVar

from finding_tickets.ground.files import relative
from finding_tickets.model.problem import Level, Problem

SUFFIX = ".md"
SIDECAR = ".remediation.yaml"
UNREADABLE = "unreadable"
"""The rule of problems with files and folders that cannot be read."""
ATTEMPTS = 3

_SECOND = 10**9
_FINE_TICK = _SECOND // 20
_COARSE_TICK = 2 * _SECOND
T = TypeVar("T")


class State(NamedTuple):
    """What a file system says of a regular file; changed bytes change it, once the clock has ticked.

    Times are in nanoseconds since 1970.
    """

    inode: int
    size: int
    modified: int
    changed: int


class File(NamedTuple):
    """A file: its path from the register's root, and where that is.

    ``state`` is None for what is not a regular file or is gone already; reading it tells which.
    """

    path: str
    place: str
    state: State | None


class KnownFiles(Generic[T]):
    """What was made of files, which counts as long as each is in the state in which it was read.

    ``before`` is what an earlier run has kept, ``kept`` what this one has asked for and a later one may use.
    """

    def __init__(self, before: Mapping[str, tuple[State, T]]) -> None:
        self._before = before
        self.kept: dict[str, tuple[State, T]] = {}

    def get(self, file: File, make: Callable[[File], T]) -> T:
        """What ``make`` makes of a file, unless that is known from before."""
        known = self._before.get(file.path)
        if known and known[0] == file.state:
            self.kept[file.path] = known
            return known[1]
        now = time.time_ns()
        made = make(file)
        is_unchanged = file.state and is_settled(file.state, now) and state_of(file.place) == file.state
        # A name that is no text can be written nowhere.
        if file.state and is_unchanged and file.path.isprintable():
            self.kept[file.path] = file.state, made
        return made


def is_settled(state: State, now: int) -> bool:
    """Whether a file in this state at the time ``now`` will be in another one if it is changed after that.

    A file that changed a moment ago could change once more before the clock of its file system ticks.
    """
    tick = _COARSE_TICK if state.changed % _SECOND == 0 else _FINE_TICK
    # Programs can set the time of modification, also to one in the future, but not that of the change.
    last = state.changed if state.modified > now else max(state.changed, state.modified)
    return last + tick < now


def markdown_files(
    root: Path,
    folders: Iterable[Path],
    problems: list[Problem],
    *,
    largest: int,
    sidecars: list[File] | None = None,
) -> Iterator[File]:
    """Every Markdown file below ``folders``, each once, in the order of their paths.

    Files beside them that are called ``*.remediation.yaml`` are added to ``sidecars``.
    Hidden folders are left out. Links that leave ``root``, linked folders, folders that cannot be read and
    files of more than ``largest`` bytes are reported.
    """
    seen: set[str] = set()
    for folder in folders:
        if not folder.is_dir():
            message = "there is no such folder"
            problems.append(_problem(relative(root, folder), "no-folder", Level.WARNING, message))
            continue
        # Below a folder that no link leads to, only a file that is itself a link can be elsewhere.
        linked = folder.resolve() != folder
        for entry, path in _below(root, folder, problems):
            if path not in seen and (not (linked or entry.is_symlink()) or _is_inside(root, path, problems)):
                seen.add(path)
                state = state_of(entry)
                if state and state.size > largest:
                    message = f"not read: {state.size} bytes, and largest_file is {largest}"
                    problems.append(_problem(path, "too-large", Level.ERROR, message))
                elif not path.lower().endswith(SIDECAR):
                    yield File(path, entry.path, state)
                elif sidecars is not None:
                    sidecars.append(File(path, entry.path, state))


def read_file(file: File, problems: list[Problem]) -> bytes | None:
    """The bytes of a file; None where it cannot be read, which is reported."""
    path = Path(file.place)
    try:
        for _ in range(ATTEMPTS):
            before = _state(path.stat())
            if before is None:
                problems.append(_problem(file.path, UNREADABLE, Level.ERROR, "not a regular file"))
                return None
            with path.open("rb") as stream:
                data = stream.read()
                if before == _state(os.fstat(stream.fileno())):
                    return data
        reason = "it changes while it is read"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    problems.append(_problem(file.path, UNREADABLE, Level.ERROR, reason))
    return None


def _below(root: Path, folder: Path, problems: list[Problem]) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Every entry that has one of the suffixes, with its path from the root."""
    waiting = [(os.fspath(folder), "" if folder == root else f"{relative(root, folder)}/")]
    while waiting:
        place, prefix = waiting.pop()
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            problems.append(_problem(prefix.rstrip("/") or ".", UNREADABLE, Level.ERROR, reason))
            continue
        folders = {entry.name: entry for entry in entries if _is_folder(entry)}
        for name in (each for each, entry in folders.items() if entry.is_symlink()):
            message = "a linked folder is not searched"
            problems.append(_problem(prefix + name, "linked-folder", Level.NOTE, message))
        for entry in entries:
            if entry.name.lower().endswith((SUFFIX, SIDECAR)) and entry.name not in folders:
                yield entry, prefix + entry.name
        for name, entry in reversed(folders.items()):
            if not (name.startswith(".") or entry.is_symlink()):
                waiting.append((entry.path, f"{prefix}{name}/"))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_inside(root: Path, path: str, problems: list[Problem]) -> bool:
    # Where links lead in a circle, this gives up without a word; reading the file says it.
    if Path(os.path.realpath(root / path)).is_relative_to(root):
        return True
    message = "the link leaves the repository"
    problems.append(_problem(path, "outside-repository", Level.ERROR, message))
    return False


def state_of(file: str | os.DirEntry[str]) -> State | None:
    """The state of a regular file, links followed; None for what is none, or is not there."""
    try:
        return _state(os.stat(file))  # noqa: PTH116 - thousands of these are made, and a Path takes longer
    except OSError:
        return None


def _state(status: os.stat_result) -> State | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return State(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _problem(path: str, rule: str, level: Level, message: str) -> Problem:
    return Problem(level=level, rule=rule, file=path, line=1, message=message)


def sidecar_names(path: str, document_id: str) -> tuple[str, ...]:
    """What the sidecar of the document at ``path`` may be called, from the root."""
    folder = PurePosixPath(path).parent
    stems = dict.fromkeys((document_id, document_id.lower()))
    return tuple((folder / f"{stem}{SIDECAR}").as_posix() for stem in stems if "/" not in stem)


def pair_sidecars(
    documents: Iterable[tuple[str, str]], sidecars: Collection[str], problems: list[Problem]
) -> dict[str, str]:
    """The sidecars of documents, by the paths of these; ``documents`` are paths and IDs.

    A sidecar that is beside none of them is reported.
    """
    pairs = {
        path: name
        for path, document_id in (documents if sidecars else ())
        for name in sidecar_names(path, document_id)[::-1]
        if name in sidecars
    }
    for path in sorted(set(sidecars).difference(pairs.values())):
        name = PurePosixPath(path).name.removesuffix(SIDECAR)
        message = f"there is no ticket {name} in this folder whose remediation this could be"
        problems.append(_problem(path, "remediation-sidecar", Level.ERROR, message))
    return pairs
