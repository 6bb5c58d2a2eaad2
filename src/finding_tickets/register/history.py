"""What git's history says of a ticket: who wrote its file when, and which commits name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from finding_tickets.ground.git import GitError, ask, cut_off

# NUL ends each field, for it is what no field can hold.
_FIELDS = "%H%x00%aI%x00%aN%x00%s%x00"
_LOG = ("log", "--no-show-signature", "--no-color", "--encoding=UTF-8")
_SETTINGS = ("-c", "core.quotePath=false", "-c", "log.showRoot=true")
_FILE_LOG = (*_SETTINGS, *_LOG, "--follow", "--name-status", f"--format={_FIELDS}", "--")
_MESSAGE_LOG = (*_LOG, "--regexp-ignore-case", "--fixed-strings", f"--format={_FIELDS}%B%x00")


class Commit(NamedTuple):
    """A commit: its whole id, when (ISO 8601) and by whom it was written, the first line of its message."""

    id: str
    date: str
    author: str
    subject: str


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
        commits = list(_of_file(ask(root, *_FILE_LOG, path), ticket_id, id_pattern))
        messages = ask(root, *_MESSAGE_LOG, f"--grep={ticket_id}")
    except GitError as error:
        return History(gaps=(f"the history is not known: {error}",))
    cut = cut_off(root)
    gaps = [] if commits else [f"{path} is in no commit of the current branch"]
    gaps += ["this clone is shallow: older commits are not known"] if cut else []
    return History(
        created=next((commit for commit in commits[-1:] if commit.id not in cut), None),
        updated=next(iter(commits), None),
        authors=tuple(dict.fromkeys(commit.author for commit in reversed(commits))),
        naming=tuple(_naming(messages, ticket_id)),
        gaps=tuple(gaps),
    )


def _of_file(log: str, ticket_id: str, id_pattern: str) -> Iterator[Commit]:
    """The commits of a file, newest first, back to the one that it began with."""
    for line in log.split("\n"):
        *fields, rest = line.split("\0")
        if fields:
            yield Commit(*fields)
        elif rest and _begins(rest, ticket_id, id_pattern):
            return


def _begins(status: str, ticket_id: str, id_pattern: str) -> bool:
    """Whether the ticket's file began with this change: added, copied, or made out of another ticket."""
    letter, _, paths = status.partition("\t")
    before = re.match(id_pattern, PurePosixPath(paths.split("\t")[0]).name, re.IGNORECASE)
    another = before is not None and before[0].casefold() != ticket_id.casefold()
    return letter.startswith(("A", "C")) or (letter.startswith("R") and another)


def _naming(log: str, ticket_id: str) -> Iterator[Commit]:
    """The commits with the ID as a word: ``B7-PT-02`` is neither in ``B7-PT-021`` nor in ``AB7-PT-02``."""
    word = re.compile(rf"(?<!\w)(?<!\w-){re.escape(ticket_id)}(?!-?\w)", re.IGNORECASE)
    size = len(Commit._fields) + 1
    fields = log.split("\0")
    for start in range(0, len(fields) - size + 1, size):
        *commit, message = fields[start : start + size]
        if word.search(message):
            yield Commit(*(field.strip("\n") for field in commit))
