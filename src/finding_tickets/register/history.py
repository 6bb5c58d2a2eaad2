"""A register in git: who wrote a ticket when, which commits name it, and what it all said at a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import relative
from finding_tickets.ground.git import Commit, GitError, LogEntry, log, shallow_commits
from finding_tickets.register.config import Config, folders_of, read_config
from finding_tickets.register.files import markdown_files, read_file
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


def rows_at(root: Path, config: Config, there: Path, now: Sequence[Row]) -> tuple[Config, tuple[Row, ...]]:
    """The configuration and the rows of the register at ``root`` as it was, with its words of today.

    ``there`` is how ``root`` was then: its rows are those in its folders of then and of today. Files that are
    as they were then have their rows of ``now``.
    """
    from finding_tickets.documents.reading import read_document

    try:
        past = read_config(there)
    except BadDataError:
        past = Config()
    names = [*(relative(root, folder) for folder in folders_of(root)[1]), *past.tickets]
    folders = [folder for name in dict.fromkeys(names) if (folder := there / name).is_dir()]
    known = {row.path: row for row in now}
    rows = []
    for file in markdown_files(there, folders, [], largest=config.largest_file):
        data = None if config.is_excluded(file.path) else read_file(file, [])
        if data is None:
            continue
        if file.path in known and read_file(file._replace(place=f"{root}/{file.path}"), []) == data:
            rows.append(known[file.path])
        else:
            document, _ = read_document(data, file.path, config.vocabulary)
            rows += [row_of(document)] if document else []
    return past, tuple(sorted(rows, key=lambda row: (natural(row.id), row.path)))
