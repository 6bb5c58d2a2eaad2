"""What was measured of a ticket over time: its evidence at every commit that changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from finding_tickets.errors import UsageError
from finding_tickets.ground.git import GitError, ask_bytes, objects
from finding_tickets.history.lineage import gaps
from finding_tickets.model.verification import Verification
from finding_tickets.register.convention import safe_name
from finding_tickets.register.history import Commit
from finding_tickets.verify.intoto import NoStatementError, read

REMOVED = "removed"

_FORMAT = "--format=%H%x00%aI%x00%aN%x00%s"
_LOG = (
    *("-c", "core.quotePath=false", "-c", "log.showRoot=true"),
    *("log", "--no-show-signature", "--no-color", "--encoding=UTF-8", _FORMAT),
    # A merge counts where it is none of its parents; renames are what they look like, two changes.
    *("--raw", "--no-abbrev", "--no-renames", "--relative", "-c", "--"),
)


@dataclass(frozen=True)
class Step:
    """One file of evidence after one commit; ``commit`` is None for what is not committed.

    ``problem`` is why there is no verification: the file was removed, edited, or cannot be read.
    """

    commit: Commit | None
    file: str
    verification: Verification | None = None
    problem: str | None = None


class Past(NamedTuple):
    """The steps, newest first, and what could not be found out."""

    steps: tuple[Step, ...]
    gaps: tuple[str, ...]


class _Change(NamedTuple):
    commit: Commit
    file: str
    blob: str | None


def past(ticket: str, root: Path, folder: str) -> Past:
    """The evidence on a ticket through the history of the current branch; git is called twice at most.

    Raises:
        UsageError: There is no history.
    """
    place = f"{folder}/{safe_name(ticket)}"
    try:
        log = ask_bytes(root, *_LOG, place).decode(errors="replace")
        # What was measured at a revision, in a folder of its own, is no past of the work tree.
        changes = [
            change for change in _changes(log) if PurePosixPath(change.file).parent == PurePosixPath(place)
        ]
        blobs = list(dict.fromkeys(change.blob for change in changes if change.blob))
        contents = objects(root, blobs)
    except GitError as error:
        hint = "history is what git has of the evidence: commit it"
        raise UsageError(f"the history is not known: {error}", hint=hint) from None
    steps = [_step(change.commit, change.file, _content(change.blob, contents)) for change in changes]
    latest = {change.file: _content(change.blob, contents) for change in reversed(changes)}
    return Past((*_uncommitted(root, place, latest), *steps), gaps(root))


def _changes(log: str) -> Iterator[_Change]:
    commit = None
    for line in log.split("\n"):
        if line.startswith(":") and commit:
            # :100644 100644 BEFORE AFTER M<tab>FILE, with a colon, a mode and an object more for each parent
            fields, _, file = line.partition("\t")
            parents = len(fields) - len(fields.lstrip(":"))
            blob = fields.split(" ")[2 * parents + 1]
            if file.endswith(".json"):
                yield _Change(commit, file, blob if blob.strip("0") else None)
        elif "\0" in line:
            commit = Commit(*line.split("\0", 3))


def _content(blob: str | None, contents: Mapping[str, bytes]) -> bytes | None:
    """The bytes of a file after a commit; None where it is gone, none where this clone does not have them."""
    return None if blob is None else contents.get(blob, b"")


def _uncommitted(root: Path, place: str, latest: Mapping[str, bytes | None]) -> Iterator[Step]:
    here = {file.relative_to(root).as_posix(): file.read_bytes() for file in (root / place).glob("*.json")}
    for file in sorted({*here, *latest}):
        if here.get(file) != latest.get(file):
            yield _step(None, file, here.get(file))


def _step(commit: Commit | None, file: str, content: bytes | None) -> Step:
    if content is None:
        return Step(commit, file, problem=REMOVED)
    try:
        return Step(commit, file, read(content).verification)
    except NoStatementError as error:
        return Step(commit, file, problem=f"is no evidence: {error}")
