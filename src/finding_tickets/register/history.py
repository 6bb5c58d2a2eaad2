"""A register in git: who wrote a ticket when, which commits name it, and what it all said at a commit.

Of a commit, git's objects are read: work tree and index stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import relative
from finding_tickets.ground.git import (
    Commit,
    GitError,
    LogEntry,
    changed_files,
    log,
    shallow_commits,
    tree_files,
)
from finding_tickets.ground.objects import read_objects
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, config_from, folders_of
from finding_tickets.register.files import SUFFIX
from finding_tickets.register.index import Row, natural, row_of


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


def config_at(root: Path, commit: str) -> Config:
    """The configuration of the register at ``root`` at a commit, or the defaults where it cannot be read."""
    found = tree_files(root, commit, (CONFIG_FILE, PROJECT_FILE))
    contents = read_objects(root, dict.fromkeys(found.values()))
    try:
        return config_from(root, {path: contents.get(name, b"") for path, name in found.items()})
    except BadDataError:
        return Config()


def rows_at(
    root: Path, config: Config, commit: str, now: Sequence[Row], also: Iterable[str] = ()
) -> tuple[Row, ...]:
    """The rows of the register at ``root`` as it was at a commit, with its words of today.

    They are those in its folders of today and ``also`` in others. ``now`` are its rows as it is: only files
    that have changed since are read.
    """
    from finding_tickets.documents.reading import read_document

    folders = dict.fromkeys([*(relative(root, folder) for folder in folders_of(root)[1]), *also])
    objects, changed = tree_files(root, commit, folders), changed_files(root, commit, folders)
    rows = [row for row in now if row.path in objects and row.path not in changed]
    # As everywhere: Markdown, in no hidden folder.
    names = (path for path in changed if path in objects and path.lower().endswith(SUFFIX))
    names = (path for path in names if not config.is_excluded(path))
    others = {path: objects[path] for path in names if "/." not in f"/{path.rpartition('/')[0]}"}
    contents = read_objects(root, dict.fromkeys(others.values()))
    for path, name in others.items():
        data = contents.get(name)
        if data is not None and len(data) <= config.largest_file:
            document, _ = read_document(data, path, config.vocabulary)
            rows += [row_of(document)] if document else []
    return tuple(sorted(rows, key=lambda row: (natural(row.id), row.path)))
