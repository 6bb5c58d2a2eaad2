"""A ticket at commits as far as it is known without measuring it: what it depends on, and its evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets import __version__
from finding_tickets.ground.checkouts import Checkouts, RevisionError
from finding_tickets.ground.objects import Snapshot
from finding_tickets.history.kept import FORM
from finding_tickets.history.remembered import key_of
from finding_tickets.history.snapshots import Stated
from finding_tickets.model.verification import Evidence
from finding_tickets.register.convention import fixes_folder, safe_name, verifier_path
from finding_tickets.verify.evidence import REMEDIATION, TOOL, TORCH, own_torch
from finding_tickets.verify.imports import module_of, reach
from finding_tickets.verify.intoto import NoStatementError, read
from finding_tickets.verify.plan import named_in


@dataclass(frozen=True)
class Subject:
    """A ticket as it stood at some commits, as far as that is known without measuring it.

    ``key`` stands for all that a measurement depends on beside code, and ``files`` are the code that any
    measurement of it rests on.
    """

    stated: Stated
    key: str
    files: tuple[str, ...]
    commits: Mapping[str, str]

    def reach(self, snapshot: Snapshot, imported: Sequence[str] = ()) -> tuple[str, ...]:
        """The paths that running it at a commit could import, whether or not something is there.

        ``imported`` are files that it is known to import, also where no text says so.
        """
        remediation = self.stated.remediation
        refs = remediation.variants.values() if remediation else ()
        modules = [ref.module for ref in refs if not ref.revision and not ref.module.endswith(".py")]
        modules += map(module_of, imported)
        return reach(snapshot.content, (*self.files, *imported), modules)


class Subjects:
    """The subjects of a repository for a meter and the devices that it counts on, each made once."""

    def __init__(self, root: Path, meter: str, devices: Sequence[str] = ()) -> None:
        self._checkouts = Checkouts(root)
        self._meter = meter
        self._devices = devices
        self._revisions: dict[str, str] = {}
        self._subjects: dict[tuple[object, ...], Subject] = {}
        self._evidence: dict[str, Evidence | None] = {}
        self._unknown: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    def of(self, stated: Stated, snapshot: Snapshot) -> Subject | None:
        """What there is to measure of a document at a commit; None where it has no verifier there."""
        verifier = verifier_at(stated, snapshot)
        if verifier is None:
            return None
        folder = snapshot.folder(fixes_folder(stated.id))
        memo = (id(stated), verifier, folder)
        if memo not in self._subjects:
            self._subjects[memo] = self._new(stated, verifier, snapshot)
        return self._subjects[memo]

    def _new(self, stated: Stated, verifier: str, snapshot: Snapshot) -> Subject:
        refs = stated.remediation.variants if stated.remediation else {}
        usual = _usual(stated, snapshot)
        here = [ref.module for ref in refs.values() if not ref.revision and ref.module.endswith(".py")]
        commits = {ref.revision: self._commit(ref.revision) for ref in refs.values() if ref.revision}
        environment = (FORM, __version__, own_torch(), self._meter, self._devices)
        key = key_of(*environment, stated.id, stated.digest, verifier, sorted(commits.items()), usual)
        return Subject(stated, key, tuple(dict.fromkeys([verifier, *here, *usual])), commits)

    def recorded(self, subject: Subject, snapshot: Snapshot, folder: str) -> Evidence | None:
        """The evidence at a commit, below ``folder``, that is of all that is there."""
        for _, name in snapshot.files(f"{folder}/{safe_name(subject.stated.id)}"):
            if name not in self._evidence:
                self._evidence[name] = _evidence(snapshot.objects.content(name))
            evidence = self._evidence[name]
            if not evidence or not self._speaks_of(evidence, subject, snapshot):
                continue
            if not self._could_import_more(evidence, name, subject, snapshot):
                return evidence
        return None

    def _commit(self, revision: str) -> str:
        """The commit that a revision names in the user's repository now, or why it names none."""
        if revision not in self._revisions:
            try:
                self._revisions[revision] = self._checkouts.revision(revision).commit
            except RevisionError as error:
                self._revisions[revision] = str(error)
        return self._revisions[revision]

    def _speaks_of(self, evidence: Evidence, subject: Subject, snapshot: Snapshot) -> bool:
        """Whether evidence is what measuring a subject with this tool would give, and not that of a failure.

        Evidence of real GPUs may be another machine's, and that of a revision is not of what a commit has.
        """
        done = evidence.verification
        if done.ticket != subject.stated.id or (done.meter, self._meter) != ("simulated",) * 2:
            return False
        if done.revision is not None:
            return False
        given = {(each.kind, each.name): each.value for each in evidence.inputs}
        expected = {
            ("version", TOOL): __version__,
            ("version", TORCH): own_torch(),
            ("file", REMEDIATION): subject.stated.digest,
            **{("commit", name): commit for name, commit in subject.commits.items()},
            **{
                ("file", file): self._digest(snapshot, file) for file in (*subject.files, *files_of(evidence))
            },
        }
        return bool(done.variants) and given == expected

    def _could_import_more(self, evidence: Evidence, name: str, subject: Subject, snapshot: Snapshot) -> bool:
        """Whether code is there that may be imported now, and was not when the evidence was made."""
        # What is unknown at one commit is there at nearly all others.
        if (unknown := self._unknown.get(name)) and snapshot.file(unknown):
            return True
        imported = tuple(files_of(evidence))
        others = (path for path in subject.reach(snapshot, imported) if path not in imported)
        self._unknown[name] = next(filter(snapshot.file, others), "")
        return bool(self._unknown[name])

    def _digest(self, snapshot: Snapshot, file: str) -> str:
        """The SHA-256 of a file at a commit; empty where there is none."""
        name = snapshot.file(file)
        if name is None:
            return ""
        if name not in self._digests:
            self._digests[name] = hashlib.sha256(snapshot.objects.content(name) or b"").hexdigest()
        return self._digests[name]


def verifier_at(stated: Stated, snapshot: Snapshot) -> str | None:
    """The verifier that a document names, or the usual one where that is there."""
    if stated.remediation and stated.remediation.verifier:
        return stated.remediation.verifier
    usual = verifier_path(stated.id)
    return usual if snapshot.file(usual) else None


def files_of(evidence: Evidence) -> Iterator[str]:
    """The files of Python that evidence rests on."""
    return (each.name for each in evidence.inputs if each.kind == "file" and each.name != REMEDIATION)


def _usual(stated: Stated, snapshot: Snapshot) -> list[str]:
    """The files in the usual folder that are variants of a ticket, as ``plan`` takes them."""
    folder = fixes_folder(stated.id)
    refs = stated.remediation.variants if stated.remediation else {}
    if not refs:
        files = (PurePosixPath(path) for path, _ in snapshot.files(folder))
        here = (file for file in files if file.parent == PurePosixPath(folder) and file.suffix == ".py")
        return sorted(file.as_posix() for file in here if not file.name.startswith("_"))
    claims = stated.remediation.claims if stated.remediation else ()
    names = dict.fromkeys(name for claim in claims for name in named_in(claim))
    return [file for name in names if name not in refs and snapshot.file(file := f"{folder}/{name}.py")]


def _evidence(content: bytes | None) -> Evidence | None:
    try:
        return read(content or b"")
    except NoStatementError:
        return None
