"""Names that a new ticket must not take: those of the files here and on every branch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from finding_tickets.ground.git import GitError, ask

_TIPS = (
    "rev-list",
    "--objects",
    "--no-walk=unsorted",
    "--missing=allow-any",
    "--branches",
    "--remotes",
    "--",
)


def on_branches(root: Path, folders: Iterable[str]) -> frozenset[str]:
    """The paths below ``folders`` at the tip of every local and remote-tracking branch; git is called once.

    None where there is no git or no repository: then there is no other branch either.
    """
    try:
        objects = ask(root, *_TIPS, *folders)
    except GitError:
        return frozenset()
    return frozenset(path for line in objects.splitlines() if (path := line.partition(" ")[2]))
