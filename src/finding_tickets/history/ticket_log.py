"""What git says of a ticket: who wrote it when, which commits name it, and its evidence at each commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.errors import UsageError
from finding_tickets.ground.commits import read_objects
from finding_tickets.ground.files import safe_name
from finding_tickets.ground.git import Commit, GitError, LogEntry, log, shallow_commits
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.intoto import NoStatementError
from finding_tickets.register.staleness import rank
from finding_tickets.verify.evidence import load

REMOVED = "removed"
UNREADABLE = "unreadable"
SHALLOW = "this clone is shallow: older commits are not known"

# A merge counts where it is none of its parents; renames are what they look like, two changes.
_RAW = ("--raw", "--no-abbrev", "--no-renames", "--relative", "-c", "--")


@dataclass(frozen=True, slots=True)
class History:
    """The history of one ticket, as far as the current branch has it in this clone."""

    created: Commit | None = None  # of the file under any of its names; None where it is not known
    updated: Commit | None = None
    authors: tuple[str, ...] = ()  # the first one first
    naming: tuple[Commit, ...] = ()  # the commits whose message names the ticket, newest first
    gaps: tuple[str, ...] = ()  # what could not be found out, and why


def history_of(root: Path, path: str, ticket_id: str, id_pattern: str) -> History:
    """The history of a ticket in the file ``path``, relative to ``root``; git is called three times.

    Renames are followed, but not to a name that begins with the ID of another ticket: tickets made from one
    template are so much alike that git takes a new one for an old one that was renamed.
    """
    try:
        commits = list(_of_file(log(root, "--follow", "--name-status", "--", path), ticket_id, id_pattern))
        # Git finds the ID anywhere: ``B7-PT-02`` is neither in ``B7-PT-021`` nor in ``AB7-PT-02``.
        word = re.compile(rf"(?<!\w)(?<!\w-){re.escape(ticket_id)}(?!-?\w)", re.IGNORECASE)
        named = log(root, "--regexp-ignore-case", "--fixed-strings", f"--grep={ticket_id}")
        naming = tuple(entry.commit for entry in named if word.search(entry.message))
    except GitError as error:
        return History(gaps=(f"the history is not known: {error}",))
    cut = shallow_commits(root)
    gaps = [] if commits else [f"{path} is in no commit of the current branch"]
    gaps += [SHALLOW] if cut else []
    return History(
        created=next((commit for commit in commits[-1:] if commit.id not in cut), None),
        updated=next(iter(commits), None),
        authors=tuple(dict.fromkeys(commit.author for commit in reversed(commits))),
        naming=naming,
        gaps=tuple(gaps),
    )


def _of_file(entries: Iterable[LogEntry], ticket_id: str, id_pattern: str) -> Iterator[Commit]:
    """The commits of a file, newest first, back to the one that it began with.

    It began where it was added, copied, or made out of another ticket.
    """
    for entry in entries:
        yield entry.commit
        for change in entry.changes:
            letter, _, paths = change.partition("\t")
            before = re.match(id_pattern, PurePosixPath(paths.split("\t")[0]).name, re.IGNORECASE)
            another = before is not None and before[0].casefold() != ticket_id.casefold()
            if letter.startswith(("A", "C")) or (letter.startswith("R") and another):
                return


@dataclass(frozen=True)
class EvidenceChange:
    """One file of evidence after one commit."""

    commit: Commit | None  # None for what is not committed
    file: str
    verification: Verification | None = None
    problem: str | None = None  # why there is none: the file was removed, edited, or cannot be read


@dataclass(frozen=True)
class EvidenceLog:
    """The changes, newest first, and what could not be found out."""

    changes: tuple[EvidenceChange, ...]
    gaps: tuple[str, ...]


def evidence_log(ticket: str, root: Path, folder: str) -> EvidenceLog:
    """The evidence on a ticket through the history of the current branch; git is called twice at most.

    Raises:
        UsageError: There is no history.
    """
    place = f"{folder}/{safe_name(ticket)}"
    changes: list[tuple[Commit, str, str | None]] = []
    try:
        for entry in log(root, *_RAW, place):
            for line in entry.changes:
                # :100644 100644 BEFORE AFTER M<tab>FILE; a colon, a mode and an object more for each parent
                fields, _, file = line.partition("\t")
                parents = len(fields) - len(fields.lstrip(":"))
                blob = fields.split(" ")[2 * parents + 1]
                # What was measured at a revision, in a folder of its own, is no past of the work tree.
                if file.endswith(".json") and PurePosixPath(file).parent == PurePosixPath(place):
                    changes.append((entry.commit, file, blob if blob.strip("0") else None))
        contents = read_objects(root, dict.fromkeys(blob for _, _, blob in changes if blob))
    except GitError as error:
        hint = "the history is that of the evidence in git: commit it first"
        raise UsageError(f"cannot read git history: {error}", hint=hint) from None
    committed = [
        # An object that this clone does not have is as good as an empty file.
        (commit, file, None if blob is None else contents.get(blob, b""))
        for commit, file, blob in changes
    ]
    latest = {file: content for _, file, content in reversed(committed)}
    here = {file.relative_to(root).as_posix(): file.read_bytes() for file in (root / place).glob("*.json")}
    uncommitted = [
        (None, file, here.get(file))
        for file in sorted({*here, *latest})
        if here.get(file) != latest.get(file)
    ]
    made = []
    for commit, file, content in (*uncommitted, *committed):
        try:
            done = None if content is None else load(content).verification
            made.append(EvidenceChange(commit, file, done, None if done else REMOVED))
        except NoStatementError as error:
            made.append(EvidenceChange(commit, file, problem=f"is no evidence: {error}"))
    return EvidenceLog(tuple(made), (SHALLOW,) if shallow_commits(root) else ())


def changed_verdicts(before: Path, now: Path) -> Mapping[str, tuple[str, str]]:
    """The verdicts recorded in two folders of evidence, where any evidence differs.

    They are by the folder within these, and whether or not they are fresh.
    """
    changed = {}
    for place in sorted({file.parent.name for folder in (before, now) for file in folder.glob("*/*.json")}):
        old, new = ({f.name: f.read_bytes() for f in (each / place).glob("*.json")} for each in (before, now))
        if old != new:
            changed[place] = _verdict(old.values()), _verdict(new.values())
    return changed


def _verdict(contents: Iterable[bytes]) -> str:
    """The verdict that counts among the evidence with these contents."""
    try:
        recorded = [load(content).verification for content in contents]
    except NoStatementError:
        return UNREADABLE
    return min(recorded, key=rank).verdict if recorded else Verdict.UNVERIFIED
