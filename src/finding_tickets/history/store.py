"""Results of measurements in the user's cache folder, found again by everything that they depend on.

Which files a measurement depends on is known only after it: those that it used. So a key stands for what it
depends on beside them, and each result under that key lists its inputs. A result also depends on files that
do not exist: code may look for one, and do without it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.ground.imports import value_of
from finding_tickets.ground.objects import Snapshot
from finding_tickets.model.ticket import Record
from finding_tickets.model.verification import Input, Verification
from finding_tickets.register.staleness import (
    DiskFiles,
    InstalledPackages,
    Recorded,
    repository_changes,
)

FOLDER = "history"
# Of the stored files; part of every key, so that those of another version are not read.
FORMAT = 6
# How many files of results are kept, those used last; a result takes a few kilobytes.
MOST_KEYS = 1_000


class WhyUnmeasured(StrEnum):
    """There was nothing to measure, something is wrong with it, or the measurement did not work."""

    ABSENT = "absent"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class UnmeasuredCommit(Record):
    """Why there is no verification of a ticket at a commit."""

    kind: WhyUnmeasured
    why: str


CommitResult = Verification | UnmeasuredCommit


class StoredResult(Record):
    """What came of measuring a ticket, and what that depends on beside the key."""

    key: str
    result: CommitResult
    inputs: tuple[Recorded, ...]  # at the commit, files by their git objects
    environment: tuple[Recorded, ...] = ()
    # What verifiers rest on where they come from another folder, the ``root`` of the register.
    beside: tuple[Recorded, ...] = ()
    root: str = ""
    # Set for a measurement that failed: with another time-out or other packages it is tried again.
    limits: str = ""

    def is_of(self, snapshot: Snapshot, limits: str) -> bool:
        """Whether measuring that commit within these limits would give the same result again."""
        return self.limits in {"", limits} and not any(repository_changes(self.inputs, snapshot))

    @property
    def is_here(self) -> bool:
        """Whether all that it rests on beside the commit is as it was."""
        root = Path(self.root or "/")
        is_changed = InstalledPackages(root).changes(self.environment)
        return not is_changed and not any(repository_changes(self.beside, DiskFiles(root)))


_RESULTS = TypeAdapter(list[StoredResult])


class ResultStore:
    """The stored results: a file of the cache for each key, with all results under it."""

    def __init__(self) -> None:
        self._known: dict[str, list[StoredResult]] = {}

    def find(self, key: str, snapshot: Snapshot, limits: str) -> StoredResult | None:
        """A result under a key that measuring that commit would only repeat."""
        return next((each for each in self._of(key) if each.is_of(snapshot, limits)), None)

    def learn(self, stored: StoredResult) -> None:
        """Know a result for this run only."""
        self._of(stored.key).append(stored)

    def add(self, stored: StoredResult) -> None:
        """Know a result, and keep it."""
        self.learn(stored)
        write_entry(FOLDER, stored.key, _RESULTS.dump_json(self._of(stored.key)), MOST_KEYS)

    def _of(self, key: str) -> list[StoredResult]:
        if key not in self._known:
            self._known[key] = []
            # A damaged file is measured again, as if it were not there.
            with suppress(ValidationError):
                for stored in _RESULTS.validate_json(read_entry(FOLDER, key) or b"[]"):
                    if stored.is_here:
                        self._known[key].append(stored)
        return self._known[key]


def at_commit(inputs: Iterable[Input], snapshot: Snapshot) -> tuple[Recorded, ...]:
    """Inputs of a repository as they are at a commit; those that it has are told by git's objects."""
    given = ((each.name, each.kind, each.value) for each in inputs)
    return tuple((name, kind, value_of(kind, name, value, snapshot)) for name, kind, value in given)


def key_of(*parts: object) -> str:
    """A name for what these parts make up together."""
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True, default=str).encode()).hexdigest()


@cache
def installed_packages() -> str:
    """A name for the packages that are installed: a failed import may come from one that is missing."""
    folders = (Path(entry) for entry in sys.path if entry)
    found = {each.name for folder in folders if folder.is_dir() for each in folder.glob("*.dist-info")}
    return key_of(sorted(found))
