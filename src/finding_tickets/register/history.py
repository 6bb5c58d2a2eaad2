"""Read from git who wrote a ticket, which commits name it, and the verdicts of its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.ground.files import safe_name
from finding_tickets.ground.git import (
    Commit,
    GitError,
    LogEntry,
    ask_bytes,
    log,
    shallow_commits,
)
from finding_tickets.register.recorded import read_facts

REMOVED = "removed"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict in a file of evidence after a commit that changed it."""

    commit: Commit
    file: str
    verdict: str  # or ``REMOVED``, or ``UNREADABLE``


@dataclass(frozen=True, slots=True)
class History:
    """The history of one ticket on the current branch, as far as this clone has it."""

    created: Commit | None = (
        None  # of the file under any of its names; None where it is not known
    )
    updated: Commit | None = None
    authors: tuple[str, ...] = ()  # the first one first
    naming: tuple[
        Commit, ...
    ] = ()  # the commits whose message names the ticket, newest first
    verdicts: tuple[RecordedVerdict, ...] = ()  # newest first
    gaps: tuple[str, ...] = ()  # what could not be found out, and why


def read_history(
    root: Path, path: str, ticket_id: str, id_pattern: str, evidence: str
) -> History:
    """Return the history of the ticket in the file ``path``, relative to ``root``.

    Renames are followed, but not to a name that begins with the ID of another ticket: tickets made from one
    template are so much alike that git takes a new one for an old one that was renamed.
    """
    # Git finds the ID anywhere: ``B7-PT-02`` is neither in ``B7-PT-021`` nor in ``AB7-PT-02``.
    word = re.compile(rf"(?<!\w)(?<!\w-){re.escape(ticket_id)}(?!-?\w)", re.IGNORECASE)
    try:
        entries = log(root, "--follow", "--name-status", "--", path)
        commits = list(_until_begun(entries, ticket_id, id_pattern))
        named = log(
            root, "--regexp-ignore-case", "--fixed-strings", f"--grep={ticket_id}"
        )
        naming = tuple(entry.commit for entry in named if word.search(entry.message))
        verdicts = tuple(_recorded_verdicts(root, f"{evidence}/{safe_name(ticket_id)}"))
    except GitError as error:
        return History(gaps=(f"the history is not known: {error}",))
    cut = shallow_commits(root)
    gaps = []
    if not commits:
        gaps.append(f"{path} is in no commit of the current branch")
    if cut:
        gaps.append("this clone is shallow: older commits are not known")
    created = commits[-1] if commits and commits[-1].id not in cut else None
    return History(
        created=created,
        updated=commits[0] if commits else None,
        authors=tuple(dict.fromkeys(commit.author for commit in reversed(commits))),
        naming=naming,
        verdicts=verdicts,
        gaps=tuple(gaps),
    )


def _until_begun(
    entries: Iterable[LogEntry], ticket_id: str, id_pattern: str
) -> Iterator[Commit]:
    """Yield the commits of a file, newest first, back to the one that added, copied or made it of another."""
    for entry in entries:
        yield entry.commit
        for change in entry.changes:
            letter, _, paths = change.partition("\t")
            before = re.match(
                id_pattern, PurePosixPath(paths.split("\t")[0]).name, re.IGNORECASE
            )
            another = (
                before is not None and before[0].casefold() != ticket_id.casefold()
            )
            if letter.startswith(("A", "C")) or (letter.startswith("R") and another):
                return


def _recorded_verdicts(root: Path, folder: str) -> Iterator[RecordedVerdict]:
    """Yield what each commit recorded in a folder of evidence, newest first."""
    for entry in log(root, "--name-status", "--no-renames", "--relative", "--", folder):
        for change in entry.changes:
            letter, _, file = change.partition("\t")
            if not file.endswith(".json"):
                continue
            verdict = REMOVED
            if letter != "D":
                verdict = _verdict_in(
                    ask_bytes(root, "show", f"{entry.commit.id}:./{file}")
                )
            yield RecordedVerdict(entry.commit, file, verdict)


def _verdict_in(content: bytes) -> str:
    """Return the verdict in the bytes of a file of evidence."""
    try:
        ((stated,),) = read_facts(content)["verdict"]
        return str(stated["verdict"])
    except ValueError:
        return UNREADABLE
