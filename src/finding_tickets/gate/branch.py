"""What a branch did to the tickets of a register, from the commits at which it left its base.

There are several where main and the branch were merged into each other. A branch is held to each of them.
What it changes in what decides about a ticket (its verifier, variants, decision and claims) is compared text
by text. Whether a changed claim demands less is decided at the points of the sweep, where it can be decided
at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf
from pathlib import Path

from finding_tickets.claims.check import at_text, meets, parse_conditions
from finding_tickets.claims.language import (
    ClaimCondition,
    ExpressionError,
    evaluate,
    parse_condition,
)
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.ground.commits import Checkouts, Revision
from finding_tickets.ground.files import fixes_folder, safe_name
from finding_tickets.ground.git import GitError, ask, shallow_commits
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import Evidence
from finding_tickets.model.vocabulary import SAME_RESULT
from finding_tickets.register.config import is_repository
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.intoto import recorded_of
from finding_tickets.register.load import Register, files_of, load
from finding_tickets.register.staleness import (
    REMEDIATION,
    CurrentVerdict,
    changed_files,
)
from finding_tickets.verify.evidence import current_verdict, read
from finding_tickets.verify.judge import FIX
from finding_tickets.verify.plan import places_of, verifier_of

Points = Sequence[Mapping[str, int]]
_Bounds = tuple[Fraction | float, Fraction | float]

SHALLOW = "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"
BUDGET = "budget:"
"""Before the name of a budget whose changes the command line accepts."""
# GitHub takes the first of these.
_OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_PIECES = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECE = re.compile("|".join(map(re.escape, _PIECES)))
_ACCEPTED = re.compile(r"^[-*#\s]*\*\*Accepted change:\*\*\s*(?P<names>[^:]+?)\s*:\s*(?P<why>\S.*)$")


class ChangeKind(StrEnum):
    """What became of something that decides about a ticket."""

    ADDED = "added"
    TIGHTENED = "tightened"
    LOOSENED = "loosened"
    CHANGED = "changed"
    REMOVED = "removed"


# What no branch needs to name: all that was demanded before still is.
HARMLESS = frozenset({ChangeKind.ADDED, ChangeKind.TIGHTENED})


@dataclass(frozen=True)
class Change:
    """One change, with the text before and after; None where there is none."""

    name: str  # ``verifier``, ``decision``, ``variants.NAME`` or a claim's ``variant.metric``
    kind: ChangeKind
    before: str | None
    after: str | None
    accepted: str | None = None  # who accepts the change and why; None where nobody does

    @property
    def is_open(self) -> bool:
        """Whether it may demand less and nobody has named it."""
        return self.kind not in HARMLESS and self.accepted is None

    def __str__(self) -> str:
        """``loosened fix.syncs: 1 -> <= 100``."""
        return f"{self.kind} {self.name}: {' -> '.join(text for text in (self.before, self.after) if text)}"


@dataclass(frozen=True)
class Side:
    """A ticket at the base or in the work tree, and what is recorded of it there."""

    document: Document
    root: Path  # that of the register
    evidence: tuple[Evidence, ...] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict)  # the bytes of each file of evidence
    current: CurrentVerdict = field(default_factory=CurrentVerdict)  # the verdict of all evidence
    problem: BadDataError | None = None  # why a file of it cannot be read; there is no evidence then

    def content(self, file: str) -> bytes | None:
        """The bytes of a file; None where it cannot be read."""
        try:
            return (self.root / file).read_bytes()
        except OSError:
            return None

    @property
    def text(self) -> bytes:
        """All that the document is read from."""
        files = [self.document.path, *sorted(files_of(self.document) - {self.document.path})]
        return b"\n".join(self.content(file) or b"" for file in files)

    @cached_property
    def disk(self) -> DiskFiles:
        """The files that the register is among."""
        return DiskFiles(self.root)

    @property
    def work(self) -> frozenset[str]:
        """The files of the repository, but for variants, that the evidence depends on."""
        return frozenset(
            each.name
            for evidence in self.evidence
            for each in evidence.inputs
            if each.kind in {"file", "path"} and each.name != REMEDIATION and not each.is_subject
        )


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
        found = [with_acceptance(_changes(old, now), old.text, now.text, who) for old in olds]
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
        # What git ignores is not at the base, and may be here as it was measured.
        for name in changed_files(recorded_of(evidence.inputs), head.disk):
            if base.disk.digest(name) != head.disk.digest(name):
                yield name
    yield from (change.name for change in found)
    files = sorted({*base.files, *head.files})
    yield from (name for name in files if base.files.get(name) != head.files.get(name))
    yield from head.current.changed
    yield from (f"{name} is another one here" for name in head.current.environment)
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


def changes(base: Side, head: Side, points: Points) -> tuple[Change, ...]:
    """What differs between the two; ``points`` are the sweep of the base's evidence, empty for none."""
    before, after = _texts(base), _texts(head)
    found = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new:
            kind = ChangeKind.CHANGED if old and new else ChangeKind.REMOVED if old else ChangeKind.ADDED
            found.append(Change(name, kind, old, new))
    for name, file in _files(base, before):
        # Of what is called otherwise now, or is gone, that has been said.
        is_said = before[name] != after.get(name) and before[name].partition(":")[0] == file
        old, new = (side.disk.digest(file) for side in (base, head))
        if name in after and not is_said and old != new:
            found.append(Change(name, ChangeKind.CHANGED, file, None))
    return (*found, *_claims(base.document, head.document, points))


def _texts(side: Side) -> dict[str, str]:
    """What a ticket names as its verifier, variants and decision."""
    verifier, remediation = verifier_of(side.document, side.root), side.document.remediation
    places: dict[str, str] = {}
    # Files that are no variants are an error of the plan, which says so.
    with suppress(BadDataError):
        places = places_of(side.document, side.root)
    work = {"verifier": verifier} if verifier else {}
    if remediation and remediation.run:
        # What is run is the code that the fix is about, and no workload beside it.
        sweep = "; ".join(map(at_text, remediation.sweep))
        texts = {"run": remediation.run.raw, "sweep": sweep, "within": remediation.within}
        work = {name: text for name, text in texts.items() if text}
    return {
        **work,
        **{f"variants.{name}": place for name, place in places.items()},
        "decision": remediation.decision if remediation else "fix",
    }


def _files(base: Side, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The files that a fix is measured by, each with the name of what it is part of."""
    if verifier := texts.get("verifier"):
        yield "verifier", verifier
        # What stands beside a verifier belongs to it, unless that is the code under test.
        folder = Path(verifier).parent
        if folder != Path() and "src" not in folder.parts[:1]:
            beside = sorted(file for file in base.work if Path(file).is_relative_to(folder))
            yield from (("verifier", file) for file in beside if file != verifier)
            # The code of a package runs before what is in it.
            yield from (
                ("verifier", f"{each.as_posix()}/__init__.py") for each in (folder, *folder.parents[:-1])
            )
    for name, place in texts.items():
        # A copy that is kept for the ticket is no code in use; the fix is what the branch is about.
        file = place.partition(":")[0]
        is_copy = Path(file).is_relative_to(fixes_folder(base.document.id.value))
        if is_copy and "@" not in place and name not in {"verifier", f"variants.{FIX}"}:
            yield name, file


def with_acceptance(
    found: Iterable[Change], base: bytes, head: bytes, by_command: str | None
) -> tuple[Change, ...]:
    """The changes, each with who accepts it: the command line, or a line that is new in the ticket."""
    before = set(base.splitlines())
    lines = [line.decode(errors="replace") for line in head.splitlines() if line not in before]
    named = {
        name.strip(): f"the ticket: {match['why'].strip()}"
        for match in filter(None, map(_ACCEPTED.match, lines))
        for name in match["names"].split(",")
    }

    def by(name: str) -> str | None:
        # ``found`` names all claims about that variant.
        return by_command or named.get(name) or named.get(name.partition(".")[0])

    return tuple(each if each.kind in HARMLESS else replace(each, accepted=by(each.name)) for each in found)


def _claims(base: Document, head: Document, points: Points) -> Iterator[Change]:
    """What became of claims, by variant and metric: the number of a claim among several says nothing."""
    before, after = _claims_by_name(base), _claims_by_name(head)
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, {}), after.get(name, {})
        added = {text: claim for text, claim in new.items() if text not in old}
        gone = {text: claim for text, claim in old.items() if text not in new}
        for text, claim in gone.items():
            kinds = {_compare(claim, other, points): said for said, other in new.items()}
            now: str | None = "; ".join(added) or None
            # What any claim of the branch demands as much is not lost.
            if ChangeKind.TIGHTENED in kinds:
                kind, now = ChangeKind.TIGHTENED, kinds[ChangeKind.TIGHTENED]
            elif not added:
                kind = ChangeKind.REMOVED
            else:
                compared = [_compare(claim, other, points) for other in added.values()]
                kind = ChangeKind.LOOSENED if compared == [ChangeKind.LOOSENED] else ChangeKind.CHANGED
            yield Change(name, kind, text, now)
        if not gone:
            yield from (Change(name, ChangeKind.ADDED, None, text) for text in added)


def _claims_by_name(document: Document) -> dict[str, dict[str, Claim]]:
    """The claims about each metric of each variant, by all that they say but for why."""
    found: dict[str, dict[str, Claim]] = {}
    for claim in document.remediation.claims if document.remediation else ():
        within = f" within {claim.tolerance:g}" if claim.tolerance is not None else ""
        where = ", ".join(f"{name} {condition}" for name, condition in sorted(claim.at.items()))
        expected = " (expected to be refuted)" if claim.expect == "refuted" else ""
        text = f"{claim.value}{within}{f' where {where}' if where else ''}{expected}"
        found.setdefault(f"{claim.variant}.{claim.metric}", {})[text] = claim
    return found


def _compare(old: Claim, new: Claim, points: Points) -> ChangeKind:
    """Whether a new claim demands all that an old one did (or more), less, or nobody can tell."""
    if old.expect == "holds" and new.expect == "refuted":
        return ChangeKind.LOOSENED
    if "refuted" in (old.expect, new.expect) or not points:
        return ChangeKind.CHANGED
    try:
        where_old, where_new = parse_conditions(old.at), parse_conditions(new.at)
        here: list[Mapping[str, int]] = [point for point in points if meets(point, where_old)]
        if not here:
            return ChangeKind.CHANGED
        if not all(meets(point, where_new) for point in here):
            return ChangeKind.LOOSENED
        if old.metric == SAME_RESULT:
            if old.value != new.value:
                return ChangeKind.CHANGED
            is_closer = (new.tolerance or 0) <= (old.tolerance or 0)
            return ChangeKind.TIGHTENED if is_closer else ChangeKind.LOOSENED
        before, after = parse_condition(old.value), parse_condition(new.value)
        for point in here:
            was, now = (_bounds(one, point) for one in (before, after))
            if was is None or now is None:
                return ChangeKind.CHANGED
            if now[0] < was[0] or now[1] > was[1]:
                return ChangeKind.LOOSENED
    except (ExpressionError, LookupError):
        return ChangeKind.CHANGED
    return ChangeKind.TIGHTENED


def _bounds(condition: ClaimCondition, at: Mapping[str, int]) -> _Bounds | None:
    """The least and the greatest count that meet a condition; None where these do not describe it."""
    values = [evaluate(side, at) for side in condition.sides]
    first, last = values[0], values[-1]
    match condition.relation:
        case "==" | "..":
            return first, last
        case "<=":
            return -inf, first
        case "<":
            return -inf, ceil(first) - 1
        case ">=":
            return first, inf
        case ">":
            return floor(first) + 1, inf
        case _:
            return None
