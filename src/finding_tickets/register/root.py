"""Where a register is: a repository, or a bare folder of Markdown files."""

from __future__ import annotations

import os
from pathlib import Path

from finding_tickets.errors import UsageError
from finding_tickets.register.config import Config, is_configured, read_config

DEFAULT_FOLDER = Config().tickets[0]


def is_repository(folder: Path) -> bool:
    """Whether ``folder`` is configured for a register or has a folder of tickets."""
    # Path.is_dir raises below a folder that may not be entered.
    return os.path.isdir(folder / DEFAULT_FOLDER) or is_configured(folder) is not None  # noqa: PTH112


def find_root(start: Path) -> Path:
    """The nearest repository with a register, from ``start`` upwards.

    Raises:
        UsageError: There is none.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if is_repository(folder):
            return folder
    hint = "tickets init makes one, --root names one"
    raise UsageError(f"no register in {start} or above it", hint=hint)


def chosen_root(root: Path | None) -> Path:
    """The root that the user names, else (or for the current directory) the nearest register upwards.

    Raises:
        UsageError: There is no such folder, or no register.
    """
    return find_root(Path.cwd()) if root is None or root == Path() else checked_root(root)


def checked_root(root: Path) -> Path:
    """A root that the user names.

    Raises:
        UsageError: It is not a folder.
    """
    if not root.is_dir():
        raise UsageError(f"--root {root}: {'not a folder' if root.exists() else 'no such folder'}")
    return root.resolve()


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
        # Most folders are in a register, and git is not asked.
        from finding_tickets.ground.git import work_tree

        return work_tree(Path.cwd()) or Path.cwd()


def folders_of(root: Path) -> tuple[Config, tuple[Path, ...]]:
    """The configuration at ``root`` and the folders that hold its documents: itself for a bare folder."""
    config = read_config(root)
    if not is_repository(root):
        return config, (root,)
    return config, tuple(root / folder for folder in config.tickets)
