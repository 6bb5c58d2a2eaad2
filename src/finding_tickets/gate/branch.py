"""What a branch did to the tickets of a register, from the commits at which it left its base.

There are several where main and the branch were merged into each other. A branch is held to each of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.gate.changes import Change, Side, accepted, changes
from finding_tickets.ground.checkouts import Checkouts, Revision
from finding_tickets.ground.files import safe_name
from finding_tickets.ground.git import GitError, ask, shallow_commits
from finding_tickets.ground.imports import value_of
from finding_tickets.register.config import is_repository
from finding_tickets.register.intoto import recorded_of
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import CurrentVerdict, repository_changes
from finding_tickets.verify.evidence import current_verdict, read

SHALLOW = "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"
BUDGET = "budget:"
"""Before the name of a budget whose changes the command line accepts."""
# GitHub takes the first of these.
_OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_PIECES = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECE = re.compile("|".join(map(re.escape, _PIECES)))


@dataclass(frozen=True)
class Base:
    """A commit at which a branch left its base, and the register there; none where there was none."""

    revision: Revision
    top: Path  # of the repository
    root: Path  # in it
    register: Register | None
    # Where a command that is given no root finds the register, from the top of the repository, if elsewhere.
    moved_from: str | None = None

    def owners_of(self, file: str) -> tuple[str, ...]:
        """The owners of a file, as CODEOWNERS says there: the last pattern that fits counts."""
        path = (self.root / file).relative_to(self.top).as_posix()
        stated = next((place for name in _OWNERS if (place := self.top / name).is_file()), None)
        found: tuple[str, ...] = ()
        for line in stated.read_text("utf-8", errors="replace").splitlines() if stated else ():
            pattern, *owners = line.partition("#")[0].split() or [""]
            # A section of GitLab is no pattern.
            if pattern and not pattern.startswith(("[", "^[")) and _owned_by(pattern).fullmatch(path):
                found = tuple(owners)
        return found


def _owned_by(pattern: str) -> re.Pattern[str]:
    """A pattern as git's ignore files have them; one that names a folder is for all that is below."""
    is_anchored, text = "/" in pattern.removesuffix("/"), pattern.removeprefix("/")
    body, position = "", 0
    for match in _PIECE.finditer(text):
        body += re.escape(text[position : match.start()]) + _PIECES[match[0]]
        position = match.end()
    body += re.escape(text[position:])
    below = ".*" if text.endswith("/") else "" if text.endswith("/*") else "(?:/.*)?"
    return re.compile(("" if is_anchored else "(?:.*/)?") + body + below)


@dataclass(frozen=True)
class BranchTicket:
    """One ticket at the bases that have it, of those that are alike the first, and in the work tree."""

    id: str
    bases: tuple[Side, ...]
    head: Side | None  # None where it is not
    why: tuple[str, ...]  # the names of what has changed, so that it is measured again
    changes: tuple[Change, ...] = ()  # in what decides about it
    held_to: tuple[Side, ...] = ()  # the bases against which something was changed that nobody has named

    @property
    def document(self) -> Document:
        """The document as it is now, or as it was."""
        return (self.head or self.bases[0]).document


def bases_of(root: Path, name: str, start: Path) -> tuple[Base, ...]:
    """Where the branch of the work tree at ``root`` left the revision ``name``.

    ``start`` is the folder from which the register at ``root`` was found.

    Raises:
        UsageError: There is no such revision, or it has no commit in common with the branch.
        BadDataError: The configuration at the base is wrong.
    """
    checkouts = Checkouts(root)
    try:
        tip = checkouts.revision(name)
        commits = ask(root, "merge-base", "--all", tip.commit, "HEAD").split()
        revisions = [Revision(name, commit) for commit in commits]
        folders = [checkouts.files(revision) for revision in revisions]
        depth = len(Path(ask(root, "rev-parse", "--show-prefix").strip()).parts)
    except RevisionError as error:
        raise UsageError(f"--base {name}: {error}") from None
    except GitError as error:
        hint = SHALLOW if shallow_commits(root) else "name a revision that the branch began at"
        raise UsageError(f"--base {name}: no commit in common with HEAD ({error})", hint=hint) from None
    made = []
    for revision, folder in zip(revisions, folders, strict=True):
        # Nothing marks a bare folder of tickets as a register: there, any folder is one.
        exists = folder.is_dir() and (is_repository(folder) or not is_repository(root))
        # A configuration in another folder would hide the register that the same command found at the base.
        top = (folder / "x").parents[depth]
        then = top / os.path.relpath(start, (root / "x").parents[depth])
        found = next((each for each in (then, *then.parents) if is_repository(each) or each == top), top)
        moved = found.relative_to(top).as_posix() if is_repository(found) and found != folder else None
        made.append(Base(revision, top, folder, load(folder) if exists else None, moved))
    return tuple(made)


def branch_tickets(bases: Iterable[Base], head: Register, named: Iterable[str]) -> tuple[BranchTicket, ...]:
    """Every ticket of any side, in the order of the work tree's; those that are gone come last.

    ``named`` are the IDs whose changes the command line accepts.
    """
    by_command = {name.casefold() for name in named}
    then: dict[str, list[Side]] = {}
    for base in bases:
        for document in base.register.documents if base.register else ():
            folder = base.register.config.evidence if base.register else ""
            side = _side(document, base.root, folder, is_checkout=True)
            sides = then.setdefault(document.id.value.casefold(), [])
            # Most tickets are the same at all bases, and are then compared and measured once.
            if not any(_is_same(other, side) for other in sides):
                sides.append(side)
    made = []
    for document in head.documents:
        now, name = _side(document, head.root, head.config.evidence, is_checkout=False), document.id.value
        olds = tuple(then.pop(name.casefold(), ()))
        who = "the command line" if name.casefold() in by_command else None
        found = [accepted(_changes(old, now), old.text, now.text, who) for old in olds]
        why = [reason for old, each in zip(olds, found, strict=True) for reason in _reasons(old, now, each)]
        held_to = [old for old, each in zip(olds, found, strict=True) if any(one.is_open for one in each)]
        every = dict.fromkeys(change for each in found for change in each)
        reasons = tuple(dict.fromkeys(why)) if olds else ("the ticket is new",)
        made.append(BranchTicket(name, olds, now, reasons, tuple(every), tuple(held_to)))
    gone = (tuple(olds) for olds in then.values())
    return (*made, *(BranchTicket(o[0].document.id.value, o, None, ("the ticket is gone",)) for o in gone))


def _changes(old: Side, now: Side) -> tuple[Change, ...]:
    points = old.evidence[0].verification.sweep if old.evidence else ()
    return changes(old, now, points)


def _is_same(one: Side, other: Side) -> bool:
    """Whether a ticket is, at two bases, the same in everything that it is measured by."""
    return not any(_reasons(one, other, _changes(one, other)))


def _reasons(base: Side, head: Side, found: Collection[Change]) -> Iterator[str]:
    """The names of what makes a measurement of the base say nothing about the work tree."""
    if base.text != head.text:
        yield head.document.path
    for evidence in base.evidence:
        given = recorded_of(evidence.inputs)
        # What git ignores is not at the base, and may be here as it was measured.
        differ = set(repository_changes(given, head.disk))
        there = [(name, kind, value_of(kind, name, value, base.disk)) for name, kind, value in given]
        yield from (name for name in repository_changes(there, head.disk) if name in differ)
    yield from (change.name for change in found)
    files = sorted({*base.files, *head.files})
    yield from (name for name in files if base.files.get(name) != head.files.get(name))
    yield from head.current.changed
    yield from (f"{name} is another one here" for name in head.current.environment)
    if head.current.unseen:
        yield f"what nobody can check later ({'; '.join(head.current.unseen)})"
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
