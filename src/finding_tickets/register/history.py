"""What git's history says of a ticket: who wrote its file when, and which commits name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.ground.git import Commit, GitError, LogEntry, log, shallow_commits


@dataclass(frozen=True, slots=True)
class History:
    """The history of one ticket, as far as the current branch has it in this clone.

    Attributes:
        created: The first commit of the file under any of its names; None where it is not known.
        updated: The last commit that changed the file.
        authors: Who wrote the commits of the file, the first one first.
        naming: The commits whose message names the ticket, newest first.
        gaps: What could not be found out, and why.
    """

    created: Commit | None = None
    updated: Commit | None = None
    authors: tuple[str, ...] = ()
    naming: tuple[Commit, ...] = ()
    gaps: tuple[str, ...] = ()


def history_of(root: Path, path: str, ticket_id: str, id_pattern: str) -> History:
    """The history of a ticket in the file ``path``, relative to ``root``; git is called twice.

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
    gaps += ["this clone is shallow: older commits are not known"] if cut else []
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
