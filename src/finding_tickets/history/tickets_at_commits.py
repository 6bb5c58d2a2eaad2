"""The tickets of a register as they stood at many commits, and what measuring each of them depends on.

Whatever is the same at several commits is read once: files are known by the names of their git objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.ground.checkouts import Checkouts
from finding_tickets.ground.objects import Objects, Snapshot
from finding_tickets.ground.paths import fixes_folder, safe_name, verifier_path
from finding_tickets.ground.version import __version__
from finding_tickets.history.store import ResultStore, UnmeasuredCommit, WhyUnmeasured, key_of, stored_result
from finding_tickets.history.walk import TicketInputs, depends_on
from finding_tickets.model.problem import REMEDIATION_RULES, Level, Problem
from finding_tickets.model.remediation import Remediation
from finding_tickets.model.verification import Evidence
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, config_from, is_repository
from finding_tickets.register.files import SUFFIX, sidecar_names
from finding_tickets.register.staleness import ABSENT, REMEDIATION, TOOL, TORCH, NoStatementError, own_torch
from finding_tickets.verify.evidence import load
from finding_tickets.verify.plan import named_in

NO_TICKET = UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why="there is no such ticket")
NO_VERIFIER = UnmeasuredCommit(kind=WhyUnmeasured.ABSENT, why="it has no verifier")

ConfigFiles = tuple[str | None, str | None]


@dataclass(frozen=True)
class TicketAtCommit:
    """What a document said of its measurement at some commits.

    ``digest`` is that of the bytes that the remediation was read from, ``problem`` what is wrong with them.
    """

    id: str
    path: str
    remediation: Remediation | None
    digest: str
    problem: str | None = None

    def verifier(self, snapshot: Snapshot) -> str | None:
        """The verifier that the document names, or the usual one if that is there."""
        if self.remediation and self.remediation.verifier:
            return self.remediation.verifier
        usual = verifier_path(self.id)
        return usual if snapshot.file(usual) else None


class RegisterAtCommits:
    """Reads the register at ``root`` as it was at commits, to be measured by a meter on these GPUs."""

    def __init__(self, root: Path, objects: Objects, meter: str, gpus: Sequence[str]) -> None:
        self._root, self._objects, self._meter, self._gpus = root, objects, meter, gpus
        self._is_repository = is_repository(root)
        self._checkouts = Checkouts(root)
        self._tickets: dict[tuple[object, ...], dict[str, TicketAtCommit]] = {}
        self._inputs: dict[tuple[object, ...], TicketInputs] = {}
        self._used: set[tuple[str, str]] = set()
        self._config = cache(self._read_config)
        self._document = cache(self._read_document)
        self._evidence = cache(self._read_evidence)
        self._digest = cache(lambda blob: hashlib.sha256(objects.content(blob) or b"").hexdigest())
        self._commit = cache(self._resolve)

    def config(self, snapshot: Snapshot) -> Config:
        """The configuration at a commit; raises ``BadDataError`` where it is wrong."""
        config = self._config((snapshot.file(CONFIG_FILE), snapshot.file(PROJECT_FILE)))
        if isinstance(config, BadDataError):
            raise config
        return config

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
            ticket = self._document(path, blob, files) if path.lower().endswith(SUFFIX) else None
            if ticket is None:
                continue
            # A remediation may stand in a file of its own beside the ticket.
            for file in sidecar_names(path, ticket.id):
                if sidecar := snapshot.file(file):
                    ticket = _with_sidecar(ticket, self._objects.content(sidecar) or b"", file)
                    break
            if other := found.get(ticket.id.casefold()):
                places = ", ".join(sorted({other.path, ticket.path}))
                ticket = replace(other, problem=f"{other.id} is the ID of several documents: {places}")
            found[ticket.id.casefold()] = ticket
        return found

    def document(self, snapshot: Snapshot, ticket: TicketAtCommit) -> Document:
        """The whole document of a ticket at a commit."""
        data = snapshot.content(ticket.path) or b""
        document, _ = read_document(data, ticket.path, self.config(snapshot).vocabulary)
        if document is None:
            raise LookupError(f"there is no document {ticket.path}")
        return document.model_copy(update={"remediation": ticket.remediation})

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
        memo = (ticket.id, ticket.digest, verifier, snapshot.folder(fixes_folder(ticket.id)))
        if memo not in self._inputs:
            self._inputs[memo] = self._new_inputs(ticket, verifier, snapshot)
        return self._inputs[memo]

    def learn_evidence(self, name: str, snapshot: Snapshot, inputs: TicketInputs, store: ResultStore) -> None:
        """Take evidence that a commit has of a ticket for a result, where it is of the files of the commit.

        Evidence of real GPUs may be another machine's, and that of a revision is not of what a commit has.
        """
        ticket = self.tickets(snapshot)[name]
        for _, blob in snapshot.files(f"{self.config(snapshot).evidence}/{safe_name(ticket.id)}"):
            evidence = None if (blob, inputs.key) in self._used else self._evidence(blob)
            if evidence is None:
                continue
            done = evidence.verification
            if done.ticket != ticket.id or (done.meter, self._meter) != ("simulated",) * 2:
                continue
            if done.revision is not None or not done.variants:
                continue
            imported = tuple(_files_of(evidence))
            files = {file: snapshot.file(file) for file in (*inputs.files, *imported)}
            expected = {
                ("version", TOOL): __version__,
                ("version", TORCH): own_torch(),
                ("file", REMEDIATION): ticket.digest,
                **{("commit", revision): commit for revision, commit in self._revisions(ticket).items()},
                **{("file", file): self._digest(blob) if blob else "" for file, blob in files.items()},
            }
            if {(each.kind, each.name): each.value for each in evidence.inputs} != expected:
                continue
            # Code that is there and was not imported may have come after the evidence.
            others = (path for path in inputs.reach(snapshot, imported) if path not in imported)
            if not any(map(snapshot.file, others)):
                self._used.add((blob, inputs.key))
                store.learn(stored_result(inputs.key, done, depends_on(inputs, snapshot, imported), snapshot))

    def _new_inputs(self, ticket: TicketAtCommit, verifier: str, snapshot: Snapshot) -> TicketInputs:
        refs = ticket.remediation.variants if ticket.remediation else {}
        folder = fixes_folder(ticket.id)
        if refs:
            # As a plan does: variants that only a claim names are those of the usual folder.
            claims = ticket.remediation.claims if ticket.remediation else ()
            names = dict.fromkeys(name for claim in claims for name in named_in(claim) if name not in refs)
            usual = [file for name in names if snapshot.file(file := f"{folder}/{name}.py")]
        else:
            files = (PurePosixPath(path) for path, _ in snapshot.files(folder))
            here = (file for file in files if file.parent == PurePosixPath(folder) and file.suffix == ".py")
            usual = sorted(file.as_posix() for file in here if not file.name.startswith("_"))
        modules = [ref.module for ref in refs.values() if not ref.revision]
        key = key_of(
            *(__version__, own_torch(), self._meter, self._gpus),
            *(ticket.id, ticket.digest, verifier, sorted(self._revisions(ticket).items()), usual),
        )
        return TicketInputs(
            key,
            tuple(dict.fromkeys([verifier, *(each for each in modules if each.endswith(".py")), *usual])),
            tuple(each for each in modules if not each.endswith(".py")),
        )

    def _revisions(self, ticket: TicketAtCommit) -> dict[str, str]:
        refs = ticket.remediation.variants.values() if ticket.remediation else ()
        return {ref.revision: self._commit(ref.revision) for ref in refs if ref.revision}

    def _resolve(self, revision: str) -> str:
        """The commit that a revision names in the repository now, or why it names none."""
        try:
            return self._checkouts.revision(revision).commit
        except RevisionError as error:
            return str(error)

    def _read_config(self, files: ConfigFiles) -> Config | BadDataError:
        names = zip((CONFIG_FILE, PROJECT_FILE), files, strict=True)
        texts = {name: self._objects.content(blob) or b"" for name, blob in names if blob}
        try:
            return config_from(self._root, texts)
        except BadDataError as error:
            return BadDataError(error.message, file=Path(error.file or "").name, line=error.line)

    def _read_document(self, path: str, blob: str, files: ConfigFiles) -> TicketAtCommit | None:
        config, data = self._config(files), self._objects.content(blob)
        if isinstance(config, BadDataError) or data is None or len(data) > config.largest_file:
            return None
        document, problems = read_document(data, path, config.vocabulary)
        if document is None:
            return None
        remediation = document.remediation
        digest = remediation.digest if remediation else ABSENT
        return TicketAtCommit(document.id.value, path, remediation, digest, _first_error(problems))

    def _read_evidence(self, blob: str) -> Evidence | None:
        try:
            return load(self._objects.content(blob) or b"")
        except NoStatementError:
            return None


def _with_sidecar(ticket: TicketAtCommit, data: bytes, sidecar: str) -> TicketAtCommit:
    if ticket.remediation:
        problem = f"the ticket has a Remediation section, and {sidecar} beside it is one too"
        return replace(ticket, problem=problem)
    remediation, problems = read_sidecar(data, sidecar)
    error = _first_error(problems)
    return replace(ticket, remediation=remediation, digest=remediation.digest, problem=error)


def _first_error(problems: tuple[Problem, ...]) -> str | None:
    """The first error in a remediation."""
    errors = (each for each in problems if each.level is Level.ERROR)
    return next((str(each) for each in errors if each.rule.startswith(REMEDIATION_RULES)), None)


def _files_of(evidence: Evidence) -> Iterator[str]:
    return (each.name for each in evidence.inputs if each.kind == "file" and each.name != REMEDIATION)
