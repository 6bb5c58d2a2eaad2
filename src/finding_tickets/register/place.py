"""The repository that somebody is in, whether or not it has a register."""

from __future__ import annotations

from pathlib import Path

from finding_tickets.errors import UsageError
from finding_tickets.ground.git import GitError, ask
from finding_tickets.register.root import checked_root, find_root


def repository_of(root: Path) -> Path:
    """The folder that the user names; for the current directory the register it is in, else git's work tree.

    Outside of both it is the current directory itself.

    Raises:
        UsageError: It is not a folder.
    """
    if root != Path():
        return checked_root(root)
    try:
        return find_root(Path.cwd())
    except UsageError:
        return work_tree(Path.cwd()) or Path.cwd()


def work_tree(folder: Path) -> Path | None:
    """The top of git's work tree that holds a folder, or None."""
    try:
        return Path(ask(folder, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()
    except GitError:
        return None
