"""Replacing files of the register: under a lock, after a check, wholly or not at all.

A new text is written beside its file, read again, and takes the file's place in one step of the file
system. So whoever reads the file, also after a crash, finds the old text or the new one. A crash may leave a
hidden file ``.NAME.md.edit`` behind, which no reader takes for a ticket and the next edit of NAME removes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.documents.splice import Splice, spliced
from finding_tickets.errors import BadDataError

Make = Callable[[bytes], Sequence[Splice]]
Confirm = Callable[[bytes, bytes], None]

PATIENCE = 30.0
"""Seconds to wait for a file that another process is editing; each edit takes milliseconds."""

_PAUSE = 0.005
_NOT_ATTRIBUTES = {errno.ENOTSUP, errno.EPERM, errno.EINVAL, errno.ENODATA, errno.EACCES}


@dataclass(frozen=True)
class Edit:
    """What is to become of the file ``path``, which is relative to the register's root.

    ``make`` says from the bytes read under the lock what to replace; ``confirm`` gets these bytes and the new
    ones. Either may raise: then nothing is written.
    """

    path: str
    make: Make
    confirm: Confirm


@dataclass(frozen=True)
class Change:
    """The bytes of a file before and after an edit; the same where there was nothing to do."""

    path: str
    old: bytes
    new: bytes


@dataclass(frozen=True)
class _Locked:
    """A file that nobody else edits while ``descriptor`` is open; ``real`` is where its links lead."""

    path: str
    real: Path
    descriptor: int


def rewrite(root: Path, path: str, make: Make, *, confirm: Confirm) -> bool:
    """Edit one file; True if its bytes changed.

    Raises:
        BadDataError: The file cannot be read, locked or written, or somebody else changed it meanwhile.
    """
    (change,) = rewrite_all(root, [Edit(path, make, confirm)])
    return change.old != change.new


def rewrite_all(root: Path, edits: Sequence[Edit], *, dry_run: bool = False) -> tuple[Change, ...]:
    """Edit several files, each named once, all of them or none; a dry run says what would change.

    No file is replaced before every new text is confirmed and on the disk. Only a crash between two
    replacements can leave one file new and the next one old.

    Raises:
        BadDataError: A file cannot be read, locked or written, or somebody else changed it meanwhile.
    """
    with ExitStack() as stack:
        # Two processes that lock the same files in different orders would wait for each other for ever.
        order = sorted((_real(root, edit.path), edit.path) for edit in edits)
        locked = {path: stack.enter_context(_locked(real, path)) for real, path in order}
        changes = tuple(_change(locked[edit.path], edit) for edit in edits)
        if not dry_run:
            _replace_all(stack, [(locked[each.path], each) for each in changes if each.old != each.new])
    return changes


def _change(file: _Locked, edit: Edit) -> Change:
    old = _content(file)
    new = spliced(old, edit.make(old))
    if new != old:
        edit.confirm(old, new)
    return Change(edit.path, old, new)


def _real(root: Path, path: str) -> Path:
    """Where the links of ``path`` lead: a link stays a link, and the file behind it is edited."""
    with _errors_of(path, "read"):
        real = (root / path).resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
    if not real.is_relative_to(root.resolve()):
        raise BadDataError("the link leaves the repository", file=path)
    if not regular:
        raise BadDataError("not a regular file", file=path)
    return real


@contextmanager
def _locked(real: Path, path: str) -> Iterator[_Locked]:
    """Hold the lock of the file that has this name now: while waiting, another one may take its place."""
    until = time.monotonic() + PATIENCE
    while True:
        with _errors_of(path, "locked"):
            descriptor = os.open(real, os.O_RDONLY)
        try:
            with _errors_of(path, "locked"):
                _lock(descriptor, path, until)
                current = _is_at(real, descriptor)
            if current:
                yield _Locked(path, real, descriptor)
                return
        finally:
            os.close(descriptor)


def _lock(descriptor: int, path: str, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise BadDataError("another process keeps the file locked", file=path) from None
            time.sleep(_PAUSE)
        else:
            return


def _content(file: _Locked) -> bytes:
    with _errors_of(file.path, "read"), open(file.descriptor, "rb", closefd=False) as stream:
        stream.seek(0)
        return stream.read()


def _replace_all(stack: ExitStack, changes: Sequence[tuple[_Locked, Change]]) -> None:
    """Put the new texts in place; where one cannot be, put back the old ones of those before it."""
    ready = [stack.enter_context(_written(file, change.new)) for file, change in changes]
    for file, change in changes:
        _check_unchanged(file, change.old)
    for count, (file, temporary) in enumerate(zip((file for file, _ in changes), ready, strict=True)):
        try:
            with _errors_of(file.path, "written"):
                temporary.replace(file.real)
        except BadDataError:
            for before, change in changes[:count]:
                with _written(before, change.old) as old, _errors_of(before.path, "put back"):
                    old.replace(before.real)
            raise
        _flush_folder(file.real.parent)


@contextmanager
def _written(file: _Locked, data: bytes) -> Iterator[Path]:
    """A file beside ``file`` that has its attributes and these bytes; it is removed unless it moves there."""
    temporary = file.real.with_name(f".{file.real.name}.edit")
    with _errors_of(file.path, "written"), ExitStack() as stack:
        _check_writable(file)
        # Whoever holds the file's lock is alone with this name: what is there was left by a crash.
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        stack.callback(os.close, descriptor)
        stack.callback(_discard, temporary, descriptor)
        # Once in place, this is the file that others lock; it stays locked until all is done.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(descriptor, "r+b", closefd=False) as stream:
            stream.write(data)
            stream.flush()
            _keep_attributes(file.descriptor, descriptor)
            os.fsync(descriptor)
            stream.seek(0)
            if stream.read() != data:
                raise OSError(errno.EIO, "the bytes read back differ")
        kept = stack.pop_all()
    with kept:
        yield temporary


def _discard(temporary: Path, descriptor: int) -> None:
    """Remove a file unless it was moved; the next one to edit may have made another one of this name."""
    with suppress(OSError):
        if _is_at(temporary, descriptor):
            temporary.unlink()


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one that has this name now."""
    return os.path.samestat(os.fstat(descriptor), path.stat())


def _check_writable(file: _Locked) -> None:
    """A file that may not be written is protected on purpose, even from those who may replace it."""
    if not os.access(file.real, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the file is read-only")


def _keep_attributes(source: int, target: int) -> None:
    """Owner, group, mode and extended attributes (which hold access control lists)."""
    wanted, made = os.fstat(source), os.fstat(target)
    if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
        os.fchown(target, wanted.st_uid, wanted.st_gid)
    os.fchmod(target, stat.S_IMODE(wanted.st_mode))
    if hasattr(os, "listxattr"):
        for name in os.listxattr(source):
            try:
                os.setxattr(target, name, os.getxattr(source, name))
            except OSError as error:
                if error.errno not in _NOT_ATTRIBUTES:
                    raise


def _check_unchanged(file: _Locked, old: bytes) -> None:
    """An editor that takes no lock may have saved meanwhile: what it wrote is not to be lost."""
    with _errors_of(file.path, "read"):
        replaced = not _is_at(file.real, file.descriptor)
    if replaced or _content(file) != old:
        raise BadDataError(
            "the file was changed by somebody else meanwhile", file=file.path, hint="try again"
        )


def _flush_folder(folder: Path) -> None:
    """Have the new name survive a power cut; where folders cannot be flushed, the file is in place anyway."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _errors_of(path: str, done: str) -> Iterator[None]:
    """Turn what the file system refuses into a message that names the file."""
    try:
        yield
    except OSError as error:
        raise BadDataError(f"cannot be {done}: {error.strerror or error}", file=path) from error
