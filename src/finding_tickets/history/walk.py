"""Measure tickets at commits, each distinct input once; ``bisect`` and ``timeline`` stand on this walk.

What a commit has is looked up among git's objects. A commit is checked out and measured only if its input is
neither known nor the same as that of another commit.

Results are kept in the user's cache folder. Which files a measurement depends on is known only after it:
those that it used, and those that code looked for in vain. So a key stands for what it depends on beside
them, and each result under that key lists its inputs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.ground.cache import read_entry, release_folders, write_entry
from finding_tickets.ground.commits import Checkouts, Objects, Revision, Snapshot
from finding_tickets.ground.git import CommitNode, LogEntry, ask
from finding_tickets.ground.imports import ABSENT, value_of
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Record
from finding_tickets.model.verification import Input, Verification
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.intoto import Recorded, recorded_of
from finding_tickets.register.staleness import InstalledPackages, repository_changes
from finding_tickets.verify.evidence import RestsOn
from finding_tickets.verify.plan import Plan
from finding_tickets.verify.verify import Settings, Verified, measure

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
    """The result of measuring a ticket, and what it depends on besides the key."""

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
        """Whether all that it depends on outside the commit is unchanged."""
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
    """Inputs of a repository as they are at a commit, files by their git objects."""
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


# Measurements that are started together; their checkouts may be removed afterwards.
AT_ONCE = 32


@dataclass(frozen=True)
class TicketInputs:
    """What measuring a ticket at a commit depends on, as far as it is known without measuring."""

    key: str  # stands for everything but code
    files: tuple[str, ...]  # the code that is run in any case


@dataclass
class Course:
    """One ticket and its result at each commit; commits are numbered from the oldest."""

    ticket: str
    inputs: Sequence[TicketInputs | UnmeasuredCommit]  # at each commit
    found: dict[int, CommitResult] = field(default_factory=dict)  # what is known so far
    measured: int = 0  # measurements made now

    @property
    def results(self) -> tuple[CommitResult, ...]:
        """What is known at each commit, once the walk has ended."""
        return tuple(self.found[place] for place in range(len(self.found)))


# What to measure of a course at a commit that is checked out in a folder; may raise ``BadDataError``.
Planner = Callable[[Course, int, Path], "tuple[Document, Plan] | UnmeasuredCommit"]


@contextmanager
def snapshots_of(root: Path, nodes: Sequence[LogEntry | CommitNode]) -> Iterator[list[Snapshot]]:
    """The folder ``root`` at commits, which can be read as long as the block lasts."""
    prefix = ask(root, "rev-parse", "--show-prefix").removesuffix("\n")
    with Objects(root) as objects:
        yield [Snapshot(objects, node.tree, prefix) for node in nodes]


@dataclass
class CommitWalk:
    """Measures the tickets of courses at commits until each has a result at every commit."""

    nodes: Sequence[LogEntry | CommitNode]
    snapshots: Sequence[Snapshot]  # they have to last as long as the walk
    store: ResultStore
    isolation: Isolation
    settings: Settings
    tell: Callable[[Course, int], None]  # called after each measurement

    def __post_init__(self) -> None:
        """Find out what a failed measurement depends on beside its input."""
        self._limits = key_of(self.settings.timeout, self.settings.memory, installed_packages())

    def run(self, courses: Sequence[Course], plan_at: Planner) -> None:
        """Measure until something is known of every commit of every course."""
        while True:
            wanted = [(course, place) for course in courses for place in self._distinct(course)]
            if not wanted:
                break
            # The newest come first: they are most like what is in use, whenever a run is interrupted. What is
            # measured may answer for other commits, which are looked up before the next round.
            wanted.sort(key=lambda each: -each[1])
            self._measure(wanted[:AT_ONCE], plan_at)

    def _distinct(self, course: Course) -> list[int]:
        """The commits without a result, of those with the same input only the newest.

        What measurements of other commits, now or earlier, say of this course is taken over first.
        """
        places: dict[tuple[object, ...], int] = {}
        for place in reversed(range(len(course.inputs))):
            inputs, snapshot = course.inputs[place], self.snapshots[place]
            if place in course.found:
                continue
            if isinstance(inputs, UnmeasuredCommit):
                course.found[place] = inputs
            elif known := self.store.find(inputs.key, snapshot, self._limits):
                course.found[place] = known.result
            else:
                places.setdefault((inputs.key, *map(snapshot.file, inputs.files)), place)
        return list(places.values())

    def _measure(self, wanted: Sequence[tuple[Course, int]], plan_at: Planner) -> None:
        # The checkouts of the round before may go: a long history needs no more room than a short one.
        release_folders()
        checkouts = Checkouts(self.settings.root)
        planned: dict[str, tuple[Document, Plan]] = {}
        places: dict[str, tuple[Course, int]] = {}
        for course, place in wanted:
            commit = self.nodes[place].commit.id
            try:
                folder = checkouts.files(Revision(commit[:10], commit))
                todo = plan_at(course, place, folder)
            except RevisionError as error:
                # That git could not write it, or the disk is full, says nothing of the commit.
                course.found[place] = UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why=str(error))
                self.tell(course, place)
                continue
            except BadDataError as error:
                todo = UnmeasuredCommit(kind=WhyUnmeasured.WRONG, why=str(error))
            if isinstance(todo, UnmeasuredCommit):
                self._keep(course, place, todo)
            else:
                key = f"{course.ticket}@{commit}"
                planned[key], places[key] = todo, (course, place)
        for key, verified in measure(planned, self.isolation, self.settings) if planned else ():
            course, place = places[key]
            course.measured += 1
            wrong = UnmeasuredCommit(kind=WhyUnmeasured.WRONG, why=str(verified.error))
            self._keep(course, place, verified.verification or wrong, verified)

    def _keep(
        self, course: Course, place: int, result: CommitResult, verified: Verified | None = None
    ) -> None:
        """Put down what came of a course at a commit, for all commits with the same input."""
        course.found[place] = result
        inputs, snapshot = course.inputs[place], self.snapshots[place]
        if isinstance(inputs, TicketInputs) and (verified is None or verified.is_lasting):
            rests, beside = (verified.rests, verified.beside) if verified else (RestsOn(), RestsOn())
            files = {(name, "file"): (name, "file", snapshot.file(name) or ABSENT) for name in inputs.files}
            files |= {each[:2]: each for each in at_commit(rests.repository, snapshot)}
            stored = StoredResult(
                key=inputs.key,
                result=result,
                inputs=tuple(files.values()),
                environment=recorded_of(rests.environment),
                beside=recorded_of(beside.repository),
                root=str(self.settings.root),
                limits="" if isinstance(result, Verification) and result.variants else self._limits,
            )
            # A result that rests on what cannot be checked later counts for this run only. A file that was
            # imported through a link out of the repository is not in git: nothing is kept.
            known = all(each.kind != "file" or snapshot.file(each.name) for each in rests.repository)
            if known and not rests.unseen:
                self.store.add(stored)
            elif known:
                self.store.learn(stored)
        self.tell(course, place)
