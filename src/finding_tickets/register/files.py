"""The files of a register: finding them, reading their bytes, and knowing those that have not changed."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from finding_tickets.ground.files import relative
from finding_tickets.model.vocabulary import Level

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

SUFFIX = ".md"
SIDECAR = ".remediation.yaml"
ABSENT = hashlib.sha256(b"").hexdigest()
"""Stands for the digest of what is not there."""
UNREADABLE = "unreadable"
"""Stands for the digest of a file that may not be read, and is the rule of problems with one."""
LARGEST_DIGEST, PART_DIGEST = 1 << 30, 1 << 26
"""Of a file of more bytes only so many, and its size, are known."""
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


class FileProblem(NamedTuple):
    """A problem as lists need it; those that the index keeps have neither line nor message."""

    file: str
    rule: str
    message: str = ""
    level: Level = Level.ERROR
    line: int = 1

    @property
    def record(self) -> Problem:
        """The same as a record."""
        # A list makes no record, and does without pydantic.
        from finding_tickets.model.ticket import Problem

        return Problem(**self._asdict())


@dataclass
class KnownFiles(Generic[T]):
    """What was made of files, which counts as long as each is in the state in which it was read.

    ``before`` is what an earlier run has kept, ``kept`` what this one has asked for and a later one may use.
    """

    before: Mapping[str, tuple[State, T]]
    kept: dict[str, tuple[State, T]] = field(default_factory=dict)

    def get(self, file: File, make: Callable[[File], T]) -> T:
        """What ``make`` makes of a file, unless that is known from before."""
        known = self.before.get(file.path)
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
    problems: list[FileProblem],
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

    def report(error: OSError) -> None:
        path = relative(root, Path(error.filename))
        problems.append(FileProblem(path, UNREADABLE, f"cannot be read: {error.strerror or error}"))

    for folder in folders:
        if not folder.is_dir():
            message = "there is no such folder"
            problems.append(FileProblem(relative(root, folder), "no-folder", message, Level.WARNING))
            continue
        # Below a folder that no link leads to, only a file that is itself a link can be elsewhere.
        is_linked = folder.resolve() != folder
        for inside, names, files in os.walk(folder, onerror=report):
            below = relative(root, Path(inside))
            prefix = "" if below == "." else f"{below}/"
            for name in sorted(names):
                if Path(inside, name).is_symlink():
                    message = "a linked folder is not searched"
                    problems.append(FileProblem(prefix + name, "linked-folder", message, Level.NOTE))
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                path, place = prefix + name, f"{inside}/{name}"
                if path in seen or not name.lower().endswith((SUFFIX, SIDECAR)):
                    continue
                seen.add(path)
                may_leave = is_linked or os.path.islink(place)  # noqa: PTH114 - a Path takes longer
                # Where links lead in a circle, realpath gives up without a word; reading the file says it.
                if may_leave and not Path(os.path.realpath(place)).is_relative_to(root):
                    message = "the link leaves the repository"
                    problems.append(FileProblem(path, "outside-repository", message))
                    continue
                file = File(path, place, state_of(place))
                if file.state and file.state.size > largest:
                    message = f"not read: {file.state.size} bytes, and largest_file is {largest}"
                    problems.append(FileProblem(path, "too-large", message))
                elif not path.lower().endswith(SIDECAR):
                    yield file
                elif sidecars is not None:
                    sidecars.append(file)


def read_file(file: File, problems: list[FileProblem]) -> bytes | None:
    """The bytes of a file; None where it cannot be read, which is reported."""
    try:
        for _ in range(ATTEMPTS):
            # Opening what is no regular file may wait for ever; of what is not there, stat says why.
            before = state_of(file.place)
            if before is None and Path(file.place).stat():
                problems.append(FileProblem(file.path, UNREADABLE, "not a regular file"))
                return None
            with Path(file.place).open("rb") as stream:
                data = stream.read()
                if before == state_of(stream.fileno()):
                    return data
        reason = "it changes while it is read"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    problems.append(FileProblem(file.path, UNREADABLE, reason))
    return None


def state_of(place: str | int) -> State | None:
    """The state of a regular file, links followed; None for what is none, or is not there."""
    try:
        status = os.stat(place)  # noqa: PTH116 - thousands of these are made, and a Path takes longer
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return State(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class DiskFiles:
    """The files below a folder of the disk, each looked at once; a large one is known by a part of it."""

    def __init__(self, root: Path, known: KnownFiles[str] | None = None) -> None:
        self._root, self._known = root, known or KnownFiles({})
        self.digest = cache(self._digest)

    def _digest(self, path: str) -> str | None:
        place = f"{self._root}/{path}"
        file = File(path, place, state_of(place))
        if file.state is None:
            return None
        # Within one run, many tickets rest on the same packages and data.
        make = _sha256_kept if is_settled(file.state, time.time_ns()) else _sha256
        return self._known.get(file, make)


def _sha256(file: File) -> str:
    """The SHA-256 of a file; of a large one that of its beginning and its size."""
    digest = hashlib.sha256()
    size = file.state.size if file.state else 0
    try:
        with Path(file.place).open("rb") as stream:
            left = size if size <= LARGEST_DIGEST else PART_DIGEST
            while left > 0 and (chunk := stream.read(min(left, 1 << 20))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError:
        return UNREADABLE
    if size > LARGEST_DIGEST:
        digest.update(str(size).encode())
    return digest.hexdigest()


_sha256_kept = lru_cache(maxsize=4096)(_sha256)


def sidecar_names(path: str, document_id: str) -> tuple[str, ...]:
    """What the sidecar of the document at ``path`` may be called, from the root."""
    folder = PurePosixPath(path).parent
    stems = dict.fromkeys((document_id, document_id.lower()))
    return tuple((folder / f"{stem}{SIDECAR}").as_posix() for stem in stems if "/" not in stem)


def pair_sidecars(
    documents: Iterable[tuple[str, str]], sidecars: Collection[str], problems: list[FileProblem]
) -> dict[str, str]:
    """The sidecars of documents, by the paths of these; ``documents`` are paths and IDs.

    A sidecar that is beside none of them is reported.
    """
    pairs = {
        path: name
        for path, document_id in documents
        for name in sidecar_names(path, document_id)[::-1]
        if name in sidecars
    }
    for path in sorted(set(sidecars).difference(pairs.values())):
        name = PurePosixPath(path).name.removesuffix(SIDECAR)
        message = f"there is no ticket {name} in this folder whose remediation this could be"
        problems.append(FileProblem(path, "remediation-sidecar", message))
    return pairs
