"""What a branch did to the tickets of a register, from the commit at which it left its base."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.gate.changes import Change, Side, accepted, changes
from finding_tickets.ground.checkouts import Checkouts, Revision
from finding_tickets.ground.files import safe_name
from finding_tickets.ground.git import GitError, ask, shallow_commits
from finding_tickets.ground.imports import module_of, places_of
from finding_tickets.model.verification import Evidence
from finding_tickets.register.config import is_repository
from finding_tickets.register.load import Register, files_of, load
from finding_tickets.register.staleness import REMEDIATION, CurrentVerdict
from finding_tickets.verify.evidence import current_verdict, digest, read

SHALLOW = "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"


@dataclass(frozen=True)
class Base:
    """The commit at which a branch left its base, and the register there; none where there was none."""

    revision: Revision
    root: Path
    register: Register | None


@dataclass(frozen=True)
class TicketEvidence:
    """What is recorded of a ticket: its evidence, the bytes of each file of it, and the verdict of all.

    ``problem`` is why a file of evidence cannot be read; there is no evidence then.
    """

    evidence: tuple[Evidence, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    current: CurrentVerdict = field(default_factory=CurrentVerdict)
    problem: BadDataError | None = None

    def imported(self, *, with_variants: bool) -> frozenset[str]:
        """The files of the repository that the evidence depends on."""
        return frozenset(
            each.name
            for evidence in self.evidence
            for each in evidence.inputs
            if each.kind == "file" and each.name != REMEDIATION and (with_variants or not each.is_subject)
        )


@dataclass(frozen=True)
class BranchTicket:
    """One ticket at the base and in the work tree; None where it is not.

    ``why`` are the reasons to measure it again, the names of what has changed; none where nothing has.
    ``changes`` are those in what decides about it.
    """

    id: str
    base: Side | None
    head: Side | None
    before: TicketEvidence
    after: TicketEvidence
    why: tuple[str, ...]
    changes: tuple[Change, ...] = ()

    @property
    def document(self) -> Document:
        """The document as it is now, or as it was."""
        side = self.head or self.base
        if side is None:
            raise LookupError(f"{self.id} is nowhere")
        return side.document

    @property
    def is_held_to_base(self) -> bool:
        """Whether the base's verifier and claims count, for changes to them that nobody has named."""
        return any(change.is_open for change in self.changes)


def base_of(root: Path, name: str) -> Base:
    """Where the branch of the work tree at ``root`` left the revision ``name``.

    Raises:
        UsageError: There is no such revision, or it has no commit in common with the branch.
        BadDataError: The configuration at the base is wrong.
    """
    checkouts = Checkouts(root)
    try:
        tip = checkouts.revision(name)
        revision = Revision(name, ask(root, "merge-base", tip.commit, "HEAD").strip())
        folder = checkouts.files(revision)
    except RevisionError as error:
        raise UsageError(f"--base {name}: {error}") from None
    except GitError as error:
        hint = SHALLOW if shallow_commits(root) else "name a revision that the branch began at"
        raise UsageError(f"--base {name}: no commit in common with HEAD ({error})", hint=hint) from None
    exists = folder.is_dir() and (is_repository(folder) or not is_repository(root))
    return Base(revision, folder, load(folder) if exists else None)


def branch_tickets(base: Base, head: Register, named: Iterable[str]) -> tuple[BranchTicket, ...]:
    """Every ticket of either side, in the order of the work tree's; those that are gone come last.

    ``named`` are the IDs whose changes the command line accepts.
    """
    by_command = {name.casefold() for name in named}
    documents = base.register.documents if base.register else ()
    then = {document.id.value.casefold(): document for document in documents}
    folder = base.register.config.evidence if base.register else "evidence"
    made = []
    for document in head.documents:
        now, name = Side(document, head.root), document.id.value
        after = _recorded(document, head.root, head.config.evidence, is_checkout=False)
        before = then.pop(name.casefold(), None)
        if before is None:
            made.append(BranchTicket(name, None, now, TicketEvidence(), after, ("the ticket is new",)))
            continue
        old, recorded = Side(before, base.root), _recorded(before, base.root, folder, is_checkout=True)
        points = recorded.evidence[0].verification.sweep if recorded.evidence else ()
        found = accepted(
            changes(old, now, points, recorded.imported(with_variants=False)),
            _text(old),
            _text(now),
            "the command line" if name.casefold() in by_command else None,
        )
        why = tuple(dict.fromkeys(_reasons(old, now, recorded, after, found)))
        made.append(BranchTicket(name, old, now, recorded, after, why, found))
    for document in then.values():
        recorded = _recorded(document, base.root, folder, is_checkout=True)
        old = Side(document, base.root)
        made.append(
            BranchTicket(document.id.value, old, None, recorded, TicketEvidence(), ("the ticket is gone",))
        )
    return tuple(made)


def _reasons(
    base: Side, head: Side, before: TicketEvidence, after: TicketEvidence, found: Collection[Change]
) -> Iterator[str]:
    """The names of what makes a measurement of the base say nothing about the work tree."""
    if _text(base) != _text(head):
        yield head.document.path
    for name in sorted(before.imported(with_variants=True)):
        if digest(base.root / name) != digest(head.root / name):
            yield name
        # A new file may be imported in the place of this one, or of a package that it is in.
        for file in places_of(module_of(name)):
            if (head.root / file).is_file() and not (base.root / file).is_file():
                yield file
    yield from (change.name for change in found)
    files = sorted({*before.files, *after.files})
    yield from (name for name in files if before.files.get(name) != after.files.get(name))
    yield from after.current.changed
    if after.problem:
        yield after.problem.file or "evidence"


def _recorded(document: Document, root: Path, folder: str, *, is_checkout: bool) -> TicketEvidence:
    """What is recorded of a ticket; whether it is fresh can only be told in the work tree."""
    place = root / folder / safe_name(document.id.value)
    files = {file.relative_to(root).as_posix(): _bytes(file) for file in sorted(place.glob("*.json"))}
    try:
        evidence = tuple(read(document.id.value, root, folder))
        current = CurrentVerdict() if is_checkout else current_verdict(document, root, folder)
        return TicketEvidence(evidence, files, current)
    except BadDataError as error:
        return TicketEvidence(files=files, problem=error)


def _text(side: Side) -> bytes:
    """All that a document is read from."""
    files = [side.document.path, *sorted(files_of(side.document) - {side.document.path})]
    return b"\n".join(_bytes(side.root / file) for file in files)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
