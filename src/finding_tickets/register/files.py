"""The files of a register: finding them, reading their bytes, and knowing those that have not changed."""

from __future__ import annotations

import hashlib
import os
import stat
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from finding_tickets.ground.files import relative
from finding_tickets.ground.store import Store
from finding_tickets.model.vocabulary import Level

SUFFIX = ".md"
SIDECAR = ".remediation.yaml"
# Of the SHA-256 of a file: enough to tell that it is another one.
DIGITS = 16
# Stands for the digest of what is not there.
ABSENT = hashlib.sha256(b"").hexdigest()[:DIGITS]
# Stands for the digest of a file that may not be read, and is the rule of problems with one.
UNREADABLE = "unreadable"
ATTEMPTS = 3

_SECOND = 10**9
_FINE_TICK = _SECOND // 20
_COARSE_TICK = 2 * _SECOND
T = TypeVar("T")


class State(NamedTuple):
    """The state of a regular file in its file system; new bytes change it once the clock has ticked.

    Times are in nanoseconds since 1970.
    """

    inode: int
    size: int
    modified: int
    changed: int

    def __str__(self) -> str:
        """The numbers, as a store has them."""
        return f"{self.inode} {self.size} {self.modified} {self.changed}"


class File(NamedTuple):
    """A file: its path from the register's root, and where that is.

    ``state`` is None for what is not a regular file or is gone already; reading it tells which.
    """

    path: str
    place: str
    state: State | None


# A problem as JSON has it: lists count problems, and do without the records.
RawProblem = dict[str, Any]


def problem_in(
    file: str, rule: str, message: str, level: Level = Level.ERROR, line: int = 1
) -> RawProblem:
    """Make a problem with a file."""
    return {
        "file": file,
        "rule": rule,
        "message": message,
        "level": level,
        "line": line,
    }


class KeptFiles(Generic[T]):
    """Values made from files; a store keeps those that stay true.

    Without a store, and of files that have just changed, it is ``at_hand`` for this process alone.
    """

    def __init__(
        self,
        kind: str,
        decode: Callable[[bytes], T],
        encode: Callable[[T], bytes] = msgspec.json.encode,
        store: Store | None = None,
    ) -> None:
        self._kind, self._decode, self._encode, self._store = (
            kind,
            decode,
            encode,
            store,
        )
        self._new: dict[str, tuple[str, bytes]] = {}
        self.at_hand: dict[str, T] = {}

    @cached_property
    def before(self) -> dict[str, tuple[str, bytes]]:
        """Return the values that the store has, by the paths of files."""
        return self._store.read(self._kind) if self._store else {}

    def get(self, file: File, make: Callable[[File], T]) -> T:
        """Return what ``make`` makes of a file, unless that is known from before."""
        if file.path in self.at_hand:
            return self.at_hand[file.path]
        state, value = self.before.get(file.path, ("", b""))
        if state == str(file.state):
            # What cannot be understood is made anew.
            with suppress(ValueError, zlib.error, msgspec.MsgspecError):
                return self._decode(value)
        now = time.time_ns()
        return self.put(file, make(file), now)

    def put(self, file: File, made: T, now: int) -> T:
        """Keep what was made of a file that was read at the time ``now`` or later."""
        is_settled_now = file.state and is_settled(file.state, now)
        if self._store and is_settled_now and state_of(file.place) == file.state:
            # A name that is no text can be written nowhere.
            with suppress(ValueError):
                self._new[file.path] = str(file.state), self._encode(made)
                return made
        self.at_hand[file.path] = made
        return made

    def save(self, gone: Iterable[str] = ()) -> None:
        """Keep what was made anew, and forget files that are gone."""
        if self._store:
            self._store.write(self._kind, self._new, gone)
            self._new = {}


def as_json(type_: Any) -> Callable[[bytes], Any]:
    """Return what makes values of a type from JSON."""
    return partial(msgspec.json.decode, type=type_)


def file_in(root: Path, path: str) -> File:
    """Return a file by its path from a root, as it is now."""
    place = f"{root}/{path}"
    return File(path, place, state_of(place))


def is_settled(state: State, now: int) -> bool:
    """Return whether a later change of a file is sure to change its state, which was read at ``now``.

    A file that changed a moment ago could change once more before the clock of its file system ticks.
    """
    tick = _COARSE_TICK if state.changed % _SECOND == 0 else _FINE_TICK
    # Programs can set the time of modification, also to one in the future, but not that of the change.
    last = state.changed if state.modified > now else max(state.changed, state.modified)
    return last + tick < now


def markdown_files(
    root: Path,
    folders: Iterable[Path],
    problems: list[RawProblem],
    *,
    largest: int,
    sidecars: list[File] | None = None,
) -> Iterator[File]:
    """Yield every Markdown file below ``folders`` once, in the order of paths.

    Files beside them that are called ``*.remediation.yaml`` are added to ``sidecars``.
    Hidden folders are left out. Links that leave ``root``, linked folders, folders that cannot be read and
    files of more than ``largest`` bytes are reported.
    """
    seen: set[str] = set()

    def report(error: OSError) -> None:
        path = relative(root, Path(error.filename))
        problems.append(
            problem_in(path, UNREADABLE, f"cannot be read: {error.strerror or error}")
        )

    for folder in folders:
        if not folder.is_dir():
            message = "there is no such folder"
            problems.append(
                problem_in(relative(root, folder), "no-folder", message, Level.WARNING)
            )
            continue
        # Below a folder that no link leads to, only a file that is itself a link can be elsewhere.
        is_linked = folder.resolve() != folder
        for inside, names, files in os.walk(folder, onerror=report):
            below = relative(root, Path(inside))
            prefix = "" if below == "." else f"{below}/"
            for name in sorted(names):
                if Path(inside, name).is_symlink():
                    message = "a linked folder is not searched"
                    problems.append(
                        problem_in(prefix + name, "linked-folder", message, Level.NOTE)
                    )
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
                    problems.append(problem_in(path, "outside-repository", message))
                    continue
                file = File(path, place, state_of(place))
                if file.state and file.state.size > largest:
                    message = f"not read: {file.state.size} bytes, and largest_file is {largest}"
                    problems.append(problem_in(path, "too-large", message))
                elif not path.lower().endswith(SIDECAR):
                    yield file
                elif sidecars is not None:
                    sidecars.append(file)


def read_file(file: File, problems: list[RawProblem]) -> bytes | None:
    """Return the bytes of a file. Report a file that cannot be read, and return None."""
    try:
        for _ in range(ATTEMPTS):
            # Opening what is no regular file may wait for ever; of what is not there, stat says why.
            before = state_of(file.place)
            if before is None and Path(file.place).stat():
                problems.append(problem_in(file.path, UNREADABLE, "not a regular file"))
                return None
            with Path(file.place).open("rb") as stream:
                data = stream.read()
                if before == state_of(stream.fileno()):
                    return data
        reason = "it changes while it is read"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    problems.append(problem_in(file.path, UNREADABLE, reason))
    return None


def state_of(place: str | int) -> State | None:
    """Return the state of a regular file, following links; None for anything else."""
    try:
        status = os.stat(place)  # noqa: PTH116 - thousands of these are made, and a Path takes longer
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return State(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class DiskFiles:
    """The files below a folder of the disk, each looked at once."""

    def __init__(self, root: Path, known: KeptFiles[str] | None = None) -> None:
        self._root, self._known = root, known or KeptFiles("file digest", as_json(str))
        self.digest = cache(self._digest)

    def _digest(self, path: str) -> str | None:
        file = file_in(self._root, path)
        if file.state is None:
            return None
        # Within one run, many tickets rest on the same packages and data.
        make = _sha256_kept if is_settled(file.state, time.time_ns()) else _sha256
        return self._known.get(file, make)


def _sha256(file: File) -> str:
    """Return the digest of a file."""
    try:
        with Path(file.place).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:DIGITS]
    except OSError:
        return UNREADABLE


_sha256_kept = lru_cache(maxsize=4096)(_sha256)


def sidecar_names(path: str, document_id: str) -> tuple[str, ...]:
    """Return the possible paths of the sidecar of the document at ``path``."""
    folder = PurePosixPath(path).parent
    stems = dict.fromkeys((document_id, document_id.lower()))
    return tuple(
        (folder / f"{stem}{SIDECAR}").as_posix() for stem in stems if "/" not in stem
    )


def pair_sidecars(
    documents: Iterable[tuple[str, str]],
    sidecars: Collection[str],
    problems: list[RawProblem],
) -> dict[str, str]:
    """Return the sidecar of each document by the document's path; ``documents`` are paths and IDs.

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
        message = (
            f"there is no ticket {name} in this folder whose remediation this could be"
        )
        problems.append(problem_in(path, "remediation-sidecar", message))
    return pairs
