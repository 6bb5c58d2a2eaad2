"""Files: what they are called, and writing them so that readers find the old content or the new one, whole.

That also holds after a crash. ``replace`` writes one file; ``create`` makes files that must not be there yet,
all or none; ``rewrite`` edits files under a lock and after a check, all or none. A crash may leave a hidden
file behind, which no reader takes for a ticket or for evidence and which the next one to write there removes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import posixpath
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import lru_cache
from pathlib import Path

from finding_tickets.errors import BadDataError

# Bytes, so that a name with a suffix or two stays below the 255 that file systems take.
LONGEST_NAME = 150
_LONGEST_PATH = 1000
# Seconds to wait for another process that is editing files of the same folder, which takes milliseconds.
PATIENCE = 30.0

_UNFINISHED = re.compile(r"\.(?P<process>[1-9][0-9]*)-[0-9a-f]{16}\.part")
# After this time no process is still writing, not even one of another machine with the same files.
_ABANDONED_SECONDS = 2.0
_PAUSE = 0.005
_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class FileEdit:
    """An edit of the file ``path``, which is relative to a root.

    ``make`` gives the new bytes for those read under the lock; whatever it raises, nothing is written then.
    """

    path: str
    make: Callable[[bytes], bytes]


@dataclass(frozen=True)
class FileChange:
    """The bytes of a file before and after an edit; the same where there was nothing to do."""

    path: str
    old: bytes
    new: bytes

    def diff(self) -> str:
        """The change as ``git apply`` takes it; empty where there is none."""
        # Lines as diff counts them: a carriage return is part of a line.
        old, new = (
            re.findall(r"[^\n]*\n|[^\n]+", data.decode())
            for data in (self.old, self.new)
        )
        lines = unified_diff(old, new, f"a/{self.path}", f"b/{self.path}")
        return "".join(
            line if line.endswith("\n") else line + _NO_NEWLINE for line in lines
        )


def verifier_path(ticket_id: str) -> str:
    """The file that holds the workload, from the repository's root, unless a Remediation names another."""
    return f"verifiers/{_slug(ticket_id)}.py"


def fixes_folder(ticket_id: str) -> str:
    """The folder in which every file is a variant of its name, from the repository's root."""
    return f"fixes/{_slug(ticket_id)}"


def _slug(ticket_id: str) -> str:
    """The ID as file names and Python spell it: ``B7-PT-02`` is ``b7_pt_02``."""
    return safe_name(ticket_id).lower().replace("-", "_")


@lru_cache(maxsize=4096)
def safe_name(name: str) -> str:
    """A name as every file system takes it, of one part and not too long; two long names stay two."""
    safe = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
    if len(safe.encode()) <= LONGEST_NAME:
        return safe
    return f"{safe[:30]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def inside_repository(path: str) -> bool:
    """Return whether a path relative to the repository's root stays below it, ignoring links."""
    # Windows paths are checked everywhere: a register is read on more than one system.
    normal = posixpath.normpath(path.replace("\\", "/"))
    outside = normal.startswith(("/", "~")) or normal.split("/")[0] == ".."
    # No system has a file whose path has NUL in it, or a name of thousands of letters.
    is_name = (
        normal.isprintable()
        and max(map(len, normal.encode().split(b"/"))) < 256
        and len(normal) < _LONGEST_PATH
    )
    return not outside and is_name and re.match(r"[A-Za-z]:", normal) is None


def relative(root: Path, path: Path) -> str:
    """A path as problems and records name it: from the root, with forward slashes."""
    return path.relative_to(root).as_posix()


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``content`` to a temporary file, then replace ``file`` in one step; a failure leaves nothing."""
    with _staged(file, content) as staged:
        staged.chmod(mode)
        staged.replace(file)


def create(root: Path, texts: Mapping[str, str]) -> list[Path]:
    """Create each file, with the folders above it, by its path from ``root``.

    Two processes that create the same file cannot both succeed, and neither overwrites anything.

    Raises:
        FileExistsError: A file is there already; those created before it are removed again.
        OSError: A file cannot be written; likewise.
    """
    created: list[Path] = []
    try:
        for name, text in texts.items():
            path = root / name
            if not path.parent.resolve().is_relative_to(root.resolve()):
                raise OSError(
                    errno.EXDEV, "the link leaves the repository", str(path.parent)
                )
            if path.parent.is_file():
                # A file in the place of the folder is in the way for good, unlike an ID that is taken.
                raise NotADirectoryError(
                    errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                created.append(path)
                file.write(text)
    except OSError:
        for path in created:
            path.unlink()
        raise
    return created


def rewrite(
    root: Path, edits: Sequence[FileEdit], *, dry_run: bool = False
) -> tuple[FileChange, ...]:
    """Edit several files, each named once: all of them or none. A dry run returns the changes.

    No file is replaced before every new text is on the disk. Only a crash between two replacements can leave
    one file new and the next one old.

    Raises:
        BadDataError: A file cannot be read, locked or written, or another process changed it.
    """
    with ExitStack() as stack:
        real = {edit.path: _real(root, edit.path) for edit in edits}
        # Two processes that lock the same folders in different orders would wait for each other for ever.
        for folder, path in sorted(
            {file.parent: path for path, file in real.items()}.items()
        ):
            stack.enter_context(locked(folder, path, PATIENCE))
        changes = []
        for edit in edits:
            with _errors_of(edit.path, "read"):
                old = real[edit.path].read_bytes()
            changes.append(FileChange(edit.path, old, edit.make(old)))
        if not dry_run:
            _replace_all(
                stack,
                {real[each.path]: each for each in changes if each.old != each.new},
            )
    return tuple(changes)


def _real(root: Path, path: str) -> Path:
    """Resolve the links of ``path``: a link stays a link, and the file behind it is edited."""
    with _errors_of(path, "read"):
        real = (root / path).resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
    if not real.is_relative_to(root.resolve()):
        raise BadDataError("the link leaves the repository", file=path)
    if not regular:
        raise BadDataError("not a regular file", file=path)
    return real


@contextmanager
def locked(folder: Path, path: str, patience: float = PATIENCE) -> Iterator[None]:
    """Be the only one to edit files of a folder, or wait for it; ``path`` is what messages call one of them.

    Raises:
        BadDataError: The folder cannot be locked, or not for so many seconds.
    """
    until = time.monotonic() + patience
    with ExitStack() as stack:
        with _errors_of(path, "locked"):
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise BadDataError(
                            "another process keeps its folder locked", file=path
                        ) from None
                time.sleep(_PAUSE)
        yield


def _replace_all(stack: ExitStack, changes: Mapping[Path, FileChange]) -> None:
    """Put the new texts in place; where one cannot be, put back the old ones of those before it."""
    ready = {
        file: stack.enter_context(_edited(file, each.path, each.new))
        for file, each in changes.items()
    }
    for file, change in changes.items():
        # An editor that takes no lock may have saved meanwhile: what it wrote is not to be lost.
        with _errors_of(change.path, "read"):
            current = file.read_bytes()
        if current != change.old:
            message = "the file was changed by somebody else meanwhile"
            raise BadDataError(message, file=change.path, hint="try again")
    replaced: list[Path] = []
    for file, change in changes.items():
        try:
            with _errors_of(change.path, "written"):
                ready[file].replace(file)
        except BadDataError:
            for before in replaced:
                path = changes[before].path
                with (
                    _edited(before, path, changes[before].old) as old,
                    _errors_of(path, "put back"),
                ):
                    old.replace(before)
            raise
        replaced.append(file)
        # Have the new name survive a power cut; where folders cannot be flushed, the file is in place anyway.
        with suppress(OSError):
            descriptor = os.open(file.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def _edited(file: Path, path: str, data: bytes) -> Iterator[Path]:
    """Yield a temporary file with the attributes of ``file`` and these bytes, flushed to disk."""
    with ExitStack() as stack:
        with _errors_of(path, "written"):
            # A file that may not be written is protected on purpose, even from those who may replace it.
            if not os.access(
                file, os.W_OK, effective_ids=os.access in os.supports_effective_ids
            ):
                raise PermissionError(errno.EACCES, "the file is read-only")
            staged = stack.enter_context(_staged(file, data))
            wanted, made = file.stat(), staged.stat()
            if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
                os.chown(staged, wanted.st_uid, wanted.st_gid)
            # The mode and the extended attributes, which hold access control lists; but the time is now.
            shutil.copystat(file, staged)
            os.utime(staged)
            with staged.open("rb") as stream:
                os.fsync(stream.fileno())
                if stream.read() != data:
                    raise OSError(errno.EIO, "the bytes read back differ")
        yield staged


@contextmanager
def _staged(file: Path, content: bytes) -> Iterator[Path]:
    """Yield a temporary file with this content, which is removed unless it is moved to ``file``.

    What a process that was killed while it wrote has left is removed by the next one.
    """
    latest = time.time() - _ABANDONED_SECONDS
    for left in file.parent.glob(".*.part"):
        ours = _UNFINISHED.fullmatch(left.name)
        with suppress(FileNotFoundError):
            if (
                ours
                and left.lstat().st_mtime < latest
                and not _is_running(int(ours["process"]))
            ):
                left.unlink()
    staged = file.with_name(f".{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(staged, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        yield staged
    finally:
        staged.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Return whether a process exists, even if it is another user's."""
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


@contextmanager
def _errors_of(path: str, done: str) -> Iterator[None]:
    """Turn what the file system refuses into a message that names the file."""
    try:
        yield
    except OSError as error:
        raise BadDataError(
            f"cannot be {done}: {error.strerror or error}", file=path
        ) from error
