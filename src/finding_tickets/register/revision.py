"""A register as it was at a commit, from git's objects alone: work tree and index stay as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from finding_tickets.errors import BadDataError
from finding_tickets.ground.git import ask_bytes
from finding_tickets.ground.objects import read_objects
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, config_from
from finding_tickets.register.files import SUFFIX
from finding_tickets.register.identifiers import natural
from finding_tickets.register.index import Row, row_of
from finding_tickets.register.paths import relative
from finding_tickets.register.root import folders_of

_DIFF = ("diff", "--name-only", "-z", "--relative", "--no-renames")


class Files(NamedTuple):
    """The objects of files at a commit by their paths, and which paths have other contents now, or none."""

    objects: Mapping[str, str]
    changed: frozenset[str]


def files_at(root: Path, commit: str, folders: Iterable[str]) -> Files:
    """The files below ``folders``; they and the paths are relative to ``root``.

    Raises:
        GitError: Git is not installed, ``root`` is in no repository, or there is no such commit.
    """
    places = ["--", *folders]
    listed = _names(ask_bytes(root, "ls-tree", "-r", "-z", commit, *places))
    # MODE blob OBJECT<tab>PATH
    entries = (each.partition("\t") for each in listed)
    found = {path: described.split(" ")[2] for described, _, path in entries}
    return Files(found, frozenset(_names(ask_bytes(root, *_DIFF, commit, *places))))


def config_at(root: Path, commit: str) -> Config:
    """The configuration of the register at ``root`` at a commit, or the defaults where it cannot be read.

    Raises:
        GitError: As ``files_at`` does.
    """
    found = files_at(root, commit, (CONFIG_FILE, PROJECT_FILE)).objects
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

    Raises:
        GitError: As ``files_at`` does.
    """
    from finding_tickets.documents.reading import read_document

    found = files_at(root, commit, dict.fromkeys([*_folders(root), *also]))
    same = [row for row in now if row.path in found.objects and row.path not in found.changed]
    others = {path: found.objects[path] for path in found.changed if path in found.objects and _is_read(path)}
    contents = read_objects(root, dict.fromkeys(others.values()))
    documents = (
        read_document(contents[name], path, config.vocabulary)[0]
        for path, name in others.items()
        if len(contents.get(name, b"")) <= config.largest_file and name in contents
    )
    rows = [*same, *(row_of(document) for document in documents if document)]
    return tuple(sorted(rows, key=lambda row: (natural(row.id), row.path)))


def _names(printed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in printed.split(b"\0") if name]


def _folders(root: Path) -> list[str]:
    return [relative(root, folder) for folder in folders_of(root)[1]]


def _is_read(path: str) -> bool:
    """Whether a file of this path would be read: Markdown, in no hidden folder."""
    *folders, name = PurePosixPath(path).parts
    return name.lower().endswith(SUFFIX) and not any(folder.startswith(".") for folder in folders)
