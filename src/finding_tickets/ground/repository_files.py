"""The files that are a repository's own: neither ignored by git nor somebody else's code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from finding_tickets.ground.git import GitError, ask

NOT_OURS = frozenset(["node_modules", "site-packages", "dist-packages", "third_party", "vendor"])
"""Folders that hold code of others, where git does not say which files are the repository's."""


def known_to_git(root: Path) -> frozenset[str] | None:
    """The files below ``root`` that are in git or could be added; None where there is no git.

    What is in git need not be in the work tree (any more).
    """
    try:
        listed = ask(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except GitError:
        return None
    return frozenset(filter(None, listed.split("\0")))


def below(root: Path) -> Iterator[str]:
    """The files below ``root`` but for those in hidden folders and in others' code, folder by folder."""
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith(".") and name not in NOT_OURS]
        place = Path(folder).relative_to(root)
        yield from ((place / file).as_posix() for file in files)
