"""Measure tickets at every commit that changes what they depend on, each distinct input once.

What a commit has is looked up among git's objects. Only a commit that may tell something new is checked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.checkouts import Checkouts, Revision, RevisionError
from finding_tickets.ground.commits import Node, commits_since
from finding_tickets.ground.folders import release
from finding_tickets.ground.git import GitError, ask
from finding_tickets.ground.objects import Objects, Snapshot
from finding_tickets.history.kept import Kept, Store, installed, resting_on
from finding_tickets.history.lineage import gaps
from finding_tickets.history.remembered import key_of
from finding_tickets.history.snapshots import Registers, Stated
from finding_tickets.history.states import Gap, Kind, Moment, state_of
from finding_tickets.history.subjects import Subject, Subjects, files_of, verifier_at
from finding_tickets.measure.environment import devices
from finding_tickets.measure.isolation import Isolation
from finding_tickets.model.verification import Evidence
from finding_tickets.register.ids import natural
from finding_tickets.register.lookup import hint_for
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.session import Settings, Verified, measure

AT_ONCE = 32
"""Measurements that are started together; their checkouts are needed no longer."""
NO_TICKET = Gap(kind=Kind.ABSENT, why="there is no such ticket")
NO_VERIFIER = Gap(kind=Kind.ABSENT, why="it has no verifier")


@dataclass(frozen=True)
class Course:
    """A ticket through commits: what is known of it at each, and how many measurements that took now."""

    ticket: str
    moments: tuple[Moment, ...]
    measured: int


@dataclass(frozen=True)
class Surveyed:
    """Tickets through commits, the oldest commit first, and what of the history is not known."""

    nodes: tuple[Node, ...]
    courses: tuple[Course, ...]
    gaps: tuple[str, ...]


def survey(
    settings: Settings, isolation: Isolation, since: str, ids: Iterable[str], tell: Callable[[str], None]
) -> Surveyed:
    """The tickets with these IDs at every commit from ``since`` to HEAD; for no IDs all with a verifier.

    ``tell`` is told of every measurement as soon as it is done. What was measured is kept, and not measured
    again. No file of the repository is written.

    Raises:
        UsageError: There is no such revision or ticket, HEAD did not come from there, or there is no history.
        UnreachableError: Nothing can be measured.
    """
    root = settings.root
    try:
        first = Checkouts(root).revision(since)
        nodes = commits_since(root, first.commit)
        if not nodes:
            raise UsageError(f"--since {since}: not among the commits that led to HEAD")
        prefix = ask(root, "rev-parse", "--show-prefix").removesuffix("\n")
        with Objects(root) as objects:
            made = Survey(nodes, objects, isolation, settings, tell, prefix=prefix)
            courses = made.run(_chosen(made, ids))
    except RevisionError as error:
        raise UsageError(f"--since {since}: {error}") from None
    except GitError as error:
        raise UsageError(f"the history is not known: {error}", hint="it is git's: commit something") from None
    return Surveyed(nodes, courses, gaps(root))


def _chosen(made: Survey, ids: Iterable[str]) -> list[str]:
    """The IDs that are meant, by which the survey knows them; those of all with a verifier for none."""
    wanted = list(dict.fromkeys(name.strip().casefold() for name in ids))
    for name in wanted:
        if name not in made.documents:
            hint = hint_for(list(made.documents.values()), name)
            raise UsageError(f"no document has the ID {name!r} at any of the commits", hint=hint)
    return wanted or sorted(made.tickets, key=lambda name: natural(made.tickets[name]))


class Survey:
    """The tickets of a register at commits; the context of ``objects`` has to last as long.

    ``tell`` is told of every measurement as soon as it is done.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        objects: Objects,
        isolation: Isolation,
        settings: Settings,
        tell: Callable[[str], None],
        *,
        prefix: str = "",
    ) -> None:
        self._nodes = nodes
        self._snapshots = [Snapshot(objects, node.tree, prefix) for node in nodes]
        self._registers = Registers(settings.root)
        self._checkouts = Checkouts(settings.root)
        self._subjects = Subjects(settings.root, settings.meter, devices(isolation, settings))
        self._isolation = isolation
        self._settings = settings
        self._tell = tell
        self._store = Store()

    @cached_property
    def tickets(self) -> Mapping[str, str]:
        """The IDs of all documents that had a verifier at any of the commits, by themselves in one case."""
        found: dict[str, str] = {}
        for snapshot in reversed(self._snapshots):
            for key, stated in self._stated(snapshot).items():
                if key not in found and verifier_at(stated, snapshot):
                    found[key] = stated.id
        return found

    @cached_property
    def documents(self) -> Mapping[str, str]:
        """The IDs of all documents at any of the commits, by themselves in one case."""
        return {
            key: stated.id for snapshot in self._snapshots for key, stated in self._stated(snapshot).items()
        }

    def run(self, tickets: Iterable[str]) -> tuple[Course, ...]:
        """The course of each ticket, by its ID in one case.

        Raises:
            GitError: Git has ended.
            UnreachableError: Nothing can be measured.
        """
        searches = [_Search(self, ticket) for ticket in tickets]
        while batch := self._batch(searches):
            self._measure(batch)
            for search in {search for search, _ in batch}:
                search.look_again()
        self._store.forget()
        return tuple(search.course for search in searches)

    def begin(self, ticket: str, place: int) -> Subject | Gap:
        """What there is to measure of a ticket at a commit."""
        snapshot = self._snapshots[place]
        try:
            stated = self._registers.all(snapshot).get(ticket)
        except BadDataError as error:
            return Gap(kind=Kind.WRONG, why=str(error))
        if stated is None:
            return NO_TICKET
        if stated.problem:
            return Gap(kind=Kind.WRONG, why=stated.problem)
        return self._subjects.of(stated, snapshot) or NO_VERIFIER

    def find(self, subject: Subject, place: int, last: Kept | None) -> Kept | None:
        """The measurement that a commit would repeat; ``last`` is that of the commit before it."""
        snapshot = self._snapshots[place]
        # Most commits change nothing of a ticket.
        if last and last.key == subject.key and last.is_of(snapshot, self._limits):
            return last
        for kept in self._store.of(subject.key):
            if kept.is_of(snapshot, self._limits):
                return kept
        folder = self._registers.config(snapshot).evidence
        evidence = self._subjects.recorded(subject, snapshot, folder)
        return self._learned(subject, snapshot, evidence) if evidence else None

    def files(self, subject: Subject, place: int) -> tuple[str | None, ...]:
        """The code that any measurement of a subject at a commit rests on."""
        return tuple(map(self._snapshots[place].file, subject.files))

    @property
    def places(self) -> range:
        """Those of the commits."""
        return range(len(self._nodes))

    @cached_property
    def _limits(self) -> str:
        """What decides whether a measurement comes to nothing, beside its inputs."""
        return key_of(self._settings.timeout, self._settings.memory, installed())

    def _stated(self, snapshot: Snapshot) -> Mapping[str, Stated]:
        try:
            return self._registers.all(snapshot)
        except BadDataError:
            return {}

    def _learned(self, subject: Subject, snapshot: Snapshot, evidence: Evidence) -> Kept:
        """The measurement that evidence tells of."""
        paths = _paths(subject, snapshot, files_of(evidence))
        kept = resting_on(subject.key, paths, snapshot, state_of(evidence.verification))
        self._store.learn(kept)
        return kept

    def _batch(self, searches: Iterable[_Search]) -> list[tuple[_Search, int]]:
        """What to measure next, none of it the same as another: that of the newest commits."""
        wanted = [(search, place) for search in searches for place in search.different()]
        return sorted(wanted, key=lambda one: -one[1])[:AT_ONCE]

    def _measure(self, batch: Iterable[tuple[_Search, int]]) -> None:
        """Measure tickets at commits, and put down what came of each as soon as it is there."""
        release()
        planned: dict[str, tuple[Document, Plan]] = {}
        wanted: dict[str, tuple[_Search, int]] = {}
        for search, place in batch:
            try:
                todo = self._planned(search.subjects[place], place)
            except RevisionError as error:
                self._end(search, place, Gap(kind=Kind.UNKNOWN, why=str(error)), is_kept=False)
                continue
            if isinstance(todo, Gap):
                self._end(search, place, todo)
            else:
                key = f"{todo[0].path}@{self._nodes[place].commit.id}"
                planned[key], wanted[key] = todo, (search, place)
        for key, verified in measure(planned, self._isolation, self._settings) if planned else ():
            search, place = wanted[key]
            search.measured += 1
            files = _imported(verified)
            # Of what did not work for the machine's sake there is no evidence.
            is_kept = bool(verified.evidence or verified.error)
            self._end(search, place, _moment(verified), files, is_kept=is_kept)

    def _planned(self, subject: Subject, place: int) -> tuple[Document, Plan] | Gap:
        """A document at a commit with what there is to measure of it.

        Raises:
            RevisionError: The commit cannot be checked out.
        """
        commit = self._nodes[place].commit.id
        folder = self._checkouts.files(Revision(commit[:10], commit))
        try:
            document = self._registers.document(self._snapshots[place], subject.stated)
            todo = plan(document, folder, repository=self._settings.root)
        except BadDataError as error:
            return Gap(kind=Kind.WRONG, why=str(error))
        if todo is None:
            return NO_VERIFIER
        return Gap(kind=Kind.UNKNOWN, why=todo.trouble) if todo.trouble else (document, todo)

    def _end(
        self, search: _Search, place: int, moment: Moment, files: Sequence[str] = (), *, is_kept: bool = True
    ) -> None:
        """Put down what came of a ticket at a commit, for all that have the same files."""
        search.found[place] = moment
        subject, snapshot = search.subjects[place], self._snapshots[place]
        # A file that was imported through a link out of the repository is none that git has.
        if is_kept and all(map(snapshot.file, files)):
            limits = "" if files else self._limits
            paths = _paths(subject, snapshot, files)
            self._store.add(resting_on(subject.key, paths, snapshot, moment, limits))
        said = moment.why if isinstance(moment, Gap) else moment.verdict
        self._tell(f"{subject.stated.id} at {self._nodes[place].commit.id[:10]}: {said}")


class _Search:
    """What is known of one ticket at each commit so far."""

    def __init__(self, survey: Survey, ticket: str) -> None:
        self._survey = survey
        self._ticket = ticket
        self.subjects: dict[int, Subject] = {}
        self.found: dict[int, Moment] = {}
        self.measured = 0
        for place in survey.places:
            begun = survey.begin(ticket, place)
            if isinstance(begun, Gap):
                self.found[place] = begun
            else:
                self.subjects[place] = begun
        self.look_again()
        # Evidence may have been recorded after the commit that it speaks of.
        self.look_again()

    @property
    def course(self) -> Course:
        """What is known of every commit."""
        name = self._survey.documents[self._ticket]
        return Course(name, tuple(self.found[place] for place in self._survey.places), self.measured)

    def look_again(self) -> None:
        """Find what measurements that were made meanwhile say of other commits."""
        last: Kept | None = None
        for place, subject in self.subjects.items():
            if place not in self.found and (kept := self._survey.find(subject, place, last)):
                self.found[place], last = kept.moment, kept

    def different(self) -> list[int]:
        """Commits of which nothing is known and that are surely no two of the same input, newest first."""
        kinds: dict[tuple[str, tuple[str | None, ...]], int] = {}
        for place in reversed(self._survey.places):
            if place not in self.found:
                subject = self.subjects[place]
                kinds.setdefault((subject.key, self._survey.files(subject, place)), place)
        return list(kinds.values())


def _paths(subject: Subject, snapshot: Snapshot, files: Iterable[str]) -> tuple[str, ...]:
    """What a measurement rests on: the files that were imported, and what would have been if it were there.

    Of one that came to nothing nobody knows what was imported, and all that could be counts.
    """
    imported = tuple(files)
    could = subject.reach(snapshot, imported)
    if not imported:
        return could
    return *imported, *(path for path in could if not snapshot.file(path))


def _imported(verified: Verified) -> tuple[str, ...]:
    """The files that a measurement rests on; none of one that came to nothing."""
    done = verified.verification
    return tuple(files_of(verified.evidence)) if verified.evidence and done and done.variants else ()


def _moment(verified: Verified) -> Moment:
    if verified.verification is None:
        return Gap(kind=Kind.WRONG, why=str(verified.error))
    return state_of(verified.verification)
