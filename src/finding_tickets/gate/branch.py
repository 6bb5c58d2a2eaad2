"""What a branch did to the tickets of a register, from the commit at which it left its base."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.gate.changes import Change, Side, accepted, changes
from finding_tickets.ground.checkouts import Checkouts, Revision
from finding_tickets.ground.files import safe_name
from finding_tickets.ground.git import GitError, ask, shallow_commits
from finding_tickets.ground.imports import module_of, places_of
from finding_tickets.register.config import is_repository
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.verify.evidence import current_verdict, digest, read

SHALLOW = "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"


@dataclass(frozen=True)
class Base:
    """The commit at which a branch left its base, and the register there; none where there was none."""

    revision: Revision
    root: Path
    register: Register | None


@dataclass(frozen=True)
class BranchTicket:
    """One ticket at the base and in the work tree; None where it is not."""

    id: str
    base: Side | None
    head: Side | None
    why: tuple[str, ...]  # the names of what has changed, so that it is measured again
    changes: tuple[Change, ...] = ()  # in what decides about it

    @property
    def document(self) -> Document:
        """The document as it is now, or as it was."""
        side = self.head or self.base
        if side is None:
            raise LookupError(f"{self.id} is nowhere")
        return side.document


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
    # Nothing marks a bare folder of tickets as a register: there, any folder is one.
    exists = folder.is_dir() and (is_repository(folder) or not is_repository(root))
    return Base(revision, folder, load(folder) if exists else None)


def branch_tickets(base: Base, head: Register, named: Iterable[str]) -> tuple[BranchTicket, ...]:
    """Every ticket of either side, in the order of the work tree's; those that are gone come last.

    ``named`` are the IDs whose changes the command line accepts.
    """
    by_command = {name.casefold() for name in named}
    then: dict[str, Side] = {}
    if base.register:
        for document in base.register.documents:
            folder = base.register.config.evidence
            then[document.id.value.casefold()] = _side(document, base.root, folder, is_checkout=True)
    made = []
    for document in head.documents:
        now, name = _side(document, head.root, head.config.evidence, is_checkout=False), document.id.value
        old = then.pop(name.casefold(), None)
        if old is None:
            made.append(BranchTicket(name, None, now, ("the ticket is new",)))
            continue
        points = old.evidence[0].verification.sweep if old.evidence else ()
        who = "the command line" if name.casefold() in by_command else None
        found = changes(old, now, points, old.imported(with_variants=False))
        found = accepted(found, old.text, now.text, who)
        made.append(BranchTicket(name, old, now, tuple(dict.fromkeys(_reasons(old, now, found))), found))
    gone = (BranchTicket(old.document.id.value, old, None, ("the ticket is gone",)) for old in then.values())
    return (*made, *gone)


def _reasons(base: Side, head: Side, found: Collection[Change]) -> Iterator[str]:
    """The names of what makes a measurement of the base say nothing about the work tree."""
    if base.text != head.text:
        yield head.document.path
    for name in sorted(base.imported(with_variants=True)):
        if digest(base.root / name) != digest(head.root / name):
            yield name
        # A new file may be imported in the place of this one, or of a package that it is in.
        for file in places_of(module_of(name)):
            if (head.root / file).is_file() and not (base.root / file).is_file():
                yield file
    yield from (change.name for change in found)
    files = sorted({*base.files, *head.files})
    yield from (name for name in files if base.files.get(name) != head.files.get(name))
    yield from head.current.changed
    if head.problem:
        yield head.problem.file or "evidence"


def _side(document: Document, root: Path, folder: str, *, is_checkout: bool) -> Side:
    """A ticket with what is recorded of it; whether that is fresh can only be told in the work tree."""
    side = Side(document, root)
    place = root / folder / safe_name(document.id.value)
    paths = (file.relative_to(root).as_posix() for file in sorted(place.glob("*.json")))
    side = replace(side, files={path: side.content(path) for path in paths})
    try:
        evidence = tuple(read(document.id.value, root, folder))
        current = CurrentVerdict() if is_checkout else current_verdict(document, root, folder)
        return replace(side, evidence=evidence, current=current)
    except BadDataError as error:
        return replace(side, problem=error)
