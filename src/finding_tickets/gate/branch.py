"""What a branch did to the tickets of a register, from the commit at which it left its base."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.gate.changes import Change, Side, accepted, changes
from finding_tickets.ground.checkouts import Checkouts, Revision, RevisionError
from finding_tickets.ground.git import GitError, ask, cut_off
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Input
from finding_tickets.register.convention import safe_name
from finding_tickets.register.load import Register, files_of, load
from finding_tickets.register.root import is_repository
from finding_tickets.verify.evidence import REMEDIATION, Current, current_verdict, read

SHALLOW = "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"


@dataclass(frozen=True)
class Base:
    """The commit at which a branch left its base, and the register there; none where there was none."""

    revision: Revision
    root: Path
    register: Register | None


@dataclass(frozen=True)
class Standing:
    """What is recorded of a ticket: its evidence, the bytes of each file of it, and the verdict of all.

    ``problem`` is why a file of evidence cannot be read; there is no evidence then.
    """

    evidence: tuple[Evidence, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    current: Current = field(default_factory=lambda: Current(Verdict.UNVERIFIED))
    problem: BadDataError | None = None

    @property
    def imported(self) -> frozenset[str]:
        """The files of the repository that the evidence rests on."""
        return frozenset(given.name for given in self._files)

    @property
    def beyond_variants(self) -> frozenset[str]:
        """Those of them that no variant lives in."""
        return frozenset(given.name for given in self._files if not given.is_subject)

    @property
    def _files(self) -> Iterator[Input]:
        inputs = (given for evidence in self.evidence for given in evidence.inputs)
        return (given for given in inputs if given.kind == "file" and given.name != REMEDIATION)


@dataclass(frozen=True)
class Pair:
    """One ticket at the base and in the work tree; None where it is not.

    ``why`` are the reasons to measure it again, the names of what has changed; none where nothing has.
    ``changes`` are those in what decides about it.
    """

    id: str
    base: Side | None
    head: Side | None
    before: Standing
    after: Standing
    why: tuple[str, ...]
    changes: tuple[Change, ...] = ()

    @property
    def document(self) -> Document:
        """The document as it is now, or as it was."""
        side = self.head or self.base
        if side is None:
            raise LookupError(f"{self.id} is nowhere")
        return side.document

    @cached_property
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
        commit = ask(root, "merge-base", tip.commit, "HEAD").strip()
        revision = Revision(name, commit)
        folder = checkouts.files(revision)
    except RevisionError as error:
        raise UsageError(f"--base {name}: {error}") from None
    except GitError as error:
        hint = SHALLOW if cut_off(root) else "name a revision that the branch began at"
        raise UsageError(f"--base {name}: no commit in common with HEAD ({error})", hint=hint) from None
    exists = folder.is_dir() and (is_repository(folder) or not is_repository(root))
    return Base(revision, folder, load(folder) if exists else None)


def pairs(base: Base, head: Register, named: Iterable[str]) -> tuple[Pair, ...]:
    """Every ticket of either side, in the order of the work tree's; those that are gone come last.

    ``named`` are the IDs whose changes the command line accepts.
    """
    by_command = {name.casefold() for name in named}
    then = {document.id.value.casefold(): document for document in _documents(base.register)}
    made = []
    for document in head.documents:
        before = then.pop(document.id.value.casefold(), None)
        made.append(_pair(base, before, head, document, by_command))
    made += [_gone(base, document) for document in then.values()]
    return tuple(made)


def _documents(register: Register | None) -> Iterable[Document]:
    return register.documents if register else ()


def _gone(base: Base, document: Document) -> Pair:
    then, before = Side(document, base.root), _recorded(document, base.root, _folder(base))
    return Pair(document.id.value, then, None, before, Standing(), ("the ticket is gone",))


def _pair(
    base: Base, before: Document | None, head: Register, document: Document, by_command: Iterable[str]
) -> Pair:
    now = Side(document, head.root)
    after = _standing(document, head.root, head.config.evidence)
    if before is None:
        return Pair(document.id.value, None, now, Standing(), after, ("the ticket is new",))
    then = Side(before, base.root)
    recorded = _recorded(before, base.root, _folder(base))
    points = recorded.evidence[0].verification.sweep if recorded.evidence else ()
    found = accepted(
        changes(then, now, points, recorded.beyond_variants),
        _text(then),
        _text(now),
        "the command line" if document.id.value.casefold() in by_command else None,
    )
    why = tuple(dict.fromkeys(_reasons(then, now, recorded, after, found)))
    return Pair(document.id.value, then, now, recorded, after, why, found)


def _reasons(
    base: Side, head: Side, before: Standing, after: Standing, found: Iterable[Change]
) -> Iterator[str]:
    """The names of what makes a measurement of the base say nothing about the work tree."""
    if _text(base) != _text(head):
        yield head.document.path
    for name in sorted(before.imported):
        if _digest(base.root / name) != _digest(head.root / name):
            yield name
        yield from _before(name, base.root, head.root)
    yield from (change.name for change in found)
    yield from (name for name in sorted({*before.files, *after.files}) if _other(name, before, after))
    yield from after.current.changed
    if after.problem:
        yield after.problem.file or "evidence"


def _other(name: str, before: Standing, after: Standing) -> bool:
    return before.files.get(name) != after.files.get(name)


def _standing(document: Document, root: Path, folder: str) -> Standing:
    """What is recorded of a ticket in the work tree, and whether it is fresh."""
    recorded = _recorded(document, root, folder)
    if recorded.problem:
        return recorded
    return Standing(recorded.evidence, recorded.files, current_verdict(document, root, folder))


def _recorded(document: Document, root: Path, folder: str) -> Standing:
    """What is recorded of a ticket, fresh or not; at a checkout nobody can tell which."""
    place = root / folder / safe_name(document.id.value)
    files = {file.relative_to(root).as_posix(): _bytes(file) for file in sorted(place.glob("*.json"))}
    try:
        return Standing(tuple(read(document.id.value, root, folder)), files)
    except BadDataError as error:
        return Standing(files=files, problem=error)


def _folder(base: Base) -> str:
    return base.register.config.evidence if base.register else "evidence"


def _before(name: str, base: Path, head: Path) -> Iterator[str]:
    """New files that are imported in the place of one that was imported, or of a package that it is in."""
    parts = Path(name).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    for depth in range(1, len(parts) + 1):
        module = "/".join(parts[:depth])
        for file in (f"{folder}{module}{end}" for folder in ("", "src/") for end in (".py", "/__init__.py")):
            if (head / file).is_file() and not (base / file).is_file():
                yield file


def _text(side: Side) -> bytes:
    """All that a document is read from."""
    return b"\n".join(_bytes(side.root / file) for file in _in_order(side.document))


def _in_order(document: Document) -> list[str]:
    return [document.path, *sorted(files_of(document) - {document.path})]


def _digest(file: Path) -> str:
    return hashlib.sha256(_bytes(file)).hexdigest() if file.is_file() else ""


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
