"""The tickets of a register as they stood at many commits, measured at each of them.

Whatever is the same at several commits is read once: files are known by the names of their git objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.commits import Checkouts, Objects, Snapshot, resolve_commits
from finding_tickets.ground.files import fixes_folder, safe_name, verifier_path
from finding_tickets.ground.git import CommitNode, GitError, commits_since, shallow_commits
from finding_tickets.history.ticket_log import SHALLOW
from finding_tickets.history.walk import (
    CommitWalk,
    Course,
    ResultStore,
    StoredResult,
    TicketInputs,
    UnmeasuredCommit,
    WhyUnmeasured,
    at_commit,
    key_of,
    snapshots_of,
)
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import Evidence
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, config_from, is_repository
from finding_tickets.register.files import SUFFIX, sidecar_names
from finding_tickets.register.index import hint_for, natural
from finding_tickets.register.intoto import NoStatementError, recorded_of
from finding_tickets.register.staleness import (
    PYTHON,
    REMEDIATION,
    TOOL,
    CodeInputs,
    InstalledPackages,
    code_inputs,
    is_environment,
    own_torch,
    repository_changes,
)
from finding_tickets.verify.evidence import load
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.verify import Settings, gpu_names

NO_TICKET = UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why="there is no such ticket")
NO_VERIFIER = UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why="it has no verifier")

ConfigFiles = tuple[str | None, str | None]


@dataclass(frozen=True)
class MeasuredHistory:
    """Tickets through commits, the oldest commit first, and what of the history is not known."""

    nodes: tuple[CommitNode, ...]
    courses: tuple[Course, ...]
    gaps: tuple[str, ...]


def measure_history(
    settings: Settings, isolation: Isolation, since: str, ids: Iterable[str], tell: Callable[[str], None]
) -> MeasuredHistory:
    """Measure the tickets with these IDs at every commit from ``since`` to HEAD; by default all.

    ``tell`` is told of every measurement as soon as it is done. Results are kept and not measured again. No
    file of the repository is written.

    Raises:
        UsageError: There is no such revision or ticket, HEAD did not come from there, or there is no history.
        UnreachableError: Nothing can be measured.
    """
    root = settings.root
    try:
        nodes = commits_since(root, Checkouts(root).revision(since).commit)
        if not nodes:
            raise UsageError(f"--since {since}: not among the commits that led to HEAD")
        with snapshots_of(root, nodes) as snapshots:
            objects, gpus = snapshots[0].objects, gpu_names(isolation, settings)
            register, store = RegisterAtCommits(root, objects, settings.meter, gpus), ResultStore()
            courses = _courses(register, snapshots, ids)
            # Evidence of real GPUs may be another machine's.
            for course in courses if settings.meter == "simulated" else ():
                for snapshot, inputs in zip(snapshots, course.inputs, strict=True):
                    if isinstance(inputs, TicketInputs) and not store.find(inputs.key, snapshot, ""):
                        for result in register.from_evidence(course.ticket.casefold(), snapshot, inputs):
                            store.learn(result)

            def plan_at(course: Course, place: int, folder: Path) -> tuple[Document, Plan] | UnmeasuredCommit:
                document = register.tickets(snapshots[place])[course.ticket.casefold()].document
                todo = plan(document, folder, repository=root)
                if todo and not todo.trouble:
                    return document, todo
                why = todo.trouble if todo else None
                return UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why=why) if why else NO_VERIFIER

            def say(course: Course, place: int) -> None:
                result = course.found[place]
                what = result.why if isinstance(result, UnmeasuredCommit) else result.verdict
                tell(f"{course.ticket} at {nodes[place].commit.id[:10]}: {what}")

            CommitWalk(nodes, snapshots, store, isolation, settings, say).run(courses, plan_at)
    except RevisionError as error:
        raise UsageError(f"--since {since}: {error}") from None
    except GitError as error:
        raise UsageError(f"cannot read git history: {error}", hint="commit something first") from None
    return MeasuredHistory(nodes, tuple(courses), (SHALLOW,) if shallow_commits(root) else ())


def _courses(register: RegisterAtCommits, snapshots: Sequence[Snapshot], ids: Iterable[str]) -> list[Course]:
    """The courses of the tickets with these IDs, or of all that had a verifier at any of the commits."""
    known: dict[str, str] = {}
    measurable: set[str] = set()
    for snapshot in snapshots:
        # Where the configuration is wrong, that is the result of each ticket at this commit.
        with suppress(BadDataError):
            for key, ticket in register.tickets(snapshot).items():
                known[key] = ticket.id
                if key not in measurable and ticket.verifier(snapshot):
                    measurable.add(key)
    wanted = list(dict.fromkeys(name.strip().casefold() for name in ids))
    for name in wanted:
        if name not in known:
            hint = hint_for(list(known.values()), name)
            raise UsageError(f"no document has the ID {name!r} at any of the commits", hint=hint)
    chosen = wanted or sorted(measurable, key=lambda name: natural(known[name]))
    return [Course(known[name], [register.inputs(name, each) for each in snapshots]) for name in chosen]


@dataclass(frozen=True)
class TicketAtCommit:
    """A document as it stood at some commits; ``problem`` is what is wrong with its Remediation."""

    document: Document
    problem: str | None = None

    @property
    def id(self) -> str:
        """The ID, as it is written."""
        return self.document.id.value

    @cached_property
    def code(self) -> CodeInputs:
        """What its Remediation says of the code."""
        return code_inputs(self.document.remediation) or CodeInputs()

    def verifier(self, snapshot: Snapshot) -> str | None:
        """The verifier that the document names, or the usual one if that is there."""
        usual = verifier_path(self.id)
        return self.code.verifier or (usual if snapshot.file(usual) else None)

    def with_sidecar(self, data: bytes, path: str) -> TicketAtCommit:
        """The ticket with the Remediation that stands in a file of its own beside it."""
        if self.document.remediation:
            problem = f"the ticket has a Remediation section, and {path} beside it is one too"
            return replace(self, problem=problem)
        remediation, problems = read_sidecar(data, path)
        document = self.document.model_copy(update={"remediation": remediation})
        return TicketAtCommit(document, _first_error(problems))


class RegisterAtCommits:
    """Reads the register at ``root`` as it was at commits, to be measured by a meter on these GPUs."""

    def __init__(self, root: Path, objects: Objects, meter: str, gpus: Sequence[str]) -> None:
        self._root, self._objects, self._meter, self._gpus = root, objects, meter, gpus
        self._is_repository = is_repository(root)
        self._tickets: dict[tuple[object, ...], dict[str, TicketAtCommit]] = {}
        self._config = cache(self._read_config)
        self._document = cache(self._read_document)
        self._evidence = cache(self._read_evidence)
        # What revisions name in the repository now.
        self._commits = cache(partial(resolve_commits, root))
        self._installed = InstalledPackages(root)

    def config(self, snapshot: Snapshot) -> Config:
        """The configuration at a commit; raises ``BadDataError`` where it is wrong."""
        return self._config((snapshot.file(CONFIG_FILE), snapshot.file(PROJECT_FILE)))

    def tickets(self, snapshot: Snapshot) -> Mapping[str, TicketAtCommit]:
        """What every document said at a commit, by its ID, whose case is folded.

        Raises:
            BadDataError: The configuration there is wrong.
        """
        config = self.config(snapshot)
        files = snapshot.file(CONFIG_FILE), snapshot.file(PROJECT_FILE)
        folders = config.tickets if self._is_repository else ("",)
        key = (files, *map(snapshot.folder, folders))
        if key in self._tickets:
            return self._tickets[key]
        found = self._tickets[key] = {}
        for path, blob in (file for folder in folders for file in snapshot.files(folder)):
            is_read = path.lower().endswith(SUFFIX) and not config.is_excluded(path)
            ticket = self._document(path, blob, files) if is_read else None
            if ticket is None:
                continue
            beside = next(filter(snapshot.file, sidecar_names(path, ticket.id)), None)
            if beside:
                ticket = ticket.with_sidecar(snapshot.content(beside) or b"", beside)
            if other := found.get(ticket.id.casefold()):
                places = ", ".join(sorted({other.document.path, path}))
                ticket = replace(other, problem=f"{other.id} is the ID of several documents: {places}")
            found[ticket.id.casefold()] = ticket
        return found

    def inputs(self, name: str, snapshot: Snapshot) -> TicketInputs | UnmeasuredCommit:
        """What measuring a ticket at a commit depends on, by its ID in one case."""
        try:
            ticket = self.tickets(snapshot).get(name)
        except BadDataError as error:
            return UnmeasuredCommit(kind=WhyUnmeasured.WRONG, why=str(error))
        if ticket is None:
            return NO_TICKET
        if ticket.problem:
            return UnmeasuredCommit(kind=WhyUnmeasured.WRONG, why=ticket.problem)
        verifier = ticket.verifier(snapshot)
        if verifier is None:
            return NO_VERIFIER
        code, folder = ticket.code, fixes_folder(ticket.id)
        named = [module for module in code.modules if module.endswith(".py")]
        # Which of the usual files are variants depends on the claims; a plan finds out, here all count.
        variant = re.compile(rf"{re.escape(folder)}/[^_/][^/]*\.py")
        usual = [path for path, _ in snapshot.files(folder) if variant.fullmatch(path)]
        versions = __version__, own_torch(), self._meter, self._gpus
        text = ticket.id, code.digest, verifier
        key = key_of(*versions, *text, sorted(self._commits(code.revisions).items()), usual)
        return TicketInputs(key, tuple(dict.fromkeys([verifier, *named, *usual])))

    def from_evidence(self, name: str, snapshot: Snapshot, inputs: TicketInputs) -> Iterator[StoredResult]:
        """The results in the evidence of a commit whose digests match the files of the commit."""
        ticket = self.tickets(snapshot)[name]
        for _, blob in snapshot.files(f"{self.config(snapshot).evidence}/{safe_name(ticket.id)}"):
            evidence = self._evidence(blob)
            # That of a revision is not of the code that the commit has.
            done = evidence.verification if evidence else None
            is_own = done and (done.ticket, done.meter, done.revision) == (ticket.id, self._meter, None)
            if not evidence or not done or not done.variants or not is_own:
                continue
            recorded = recorded_of(evidence.inputs)
            given = {(name, kind): value for name, kind, value in recorded}
            revisions = ticket.code.revisions
            commits = self._commits(revisions)
            now = {
                (TOOL, "version"): __version__,
                (REMEDIATION, "file"): ticket.code.digest,
                **{(revision, "commit"): commits.get(revision, "") for revision in revisions},
            }
            is_known = (PYTHON, "version") in given and now.items() <= given.items() and not done.unseen
            if not is_known or self._installed.changes(recorded):
                continue
            contents = _Contents(snapshot.objects, snapshot.tree, snapshot.prefix)
            if not any(repository_changes(recorded, contents)):
                own = [
                    each
                    for each in evidence.inputs
                    if each.name != REMEDIATION and not is_environment(each.name, each.kind)
                ]
                yield StoredResult(key=inputs.key, result=done, inputs=at_commit(own, snapshot))

    def _read_config(self, files: ConfigFiles) -> Config:
        names = zip((CONFIG_FILE, PROJECT_FILE), files, strict=True)
        texts = {name: self._objects.content(blob) or b"" for name, blob in names if blob}
        try:
            return config_from(self._root, texts)
        except BadDataError as error:
            # The file that is meant is the commit's, and not that of the work tree.
            raise BadDataError(error.message, file=Path(error.file or "").name, line=error.line) from None

    def _read_document(self, path: str, blob: str, files: ConfigFiles) -> TicketAtCommit | None:
        # The same file may be no document, or too large, by another configuration.
        config, data = self._config(files), self._objects.content(blob)
        if data is None or len(data) > config.largest_file:
            return None
        document, problems = read_document(data, path, config.vocabulary)
        return TicketAtCommit(document, _first_error(problems)) if document else None

    def _read_evidence(self, blob: str) -> Evidence | None:
        with suppress(NoStatementError):
            return load(self._objects.content(blob) or b"")
        return None


class _Contents(Snapshot):
    """The files at a commit by the SHA-256 of their content, as evidence has it."""

    def digest(self, path: str) -> str | None:
        """That of a regular file; None where there is none."""
        blob = self.file(path)
        return self.objects.sha256(blob) if blob else None


def _first_error(problems: Iterable[Problem]) -> str | None:
    """The first error in a Remediation."""
    errors = (each for each in problems if each.level is Level.ERROR)
    return next((str(each) for each in errors if each.rule.startswith(REMEDIATION_RULES)), None)
