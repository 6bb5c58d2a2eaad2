"""Whether code stands in git as it is here, so that it can be had again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from finding_tickets.ground.git import GitError, ask

DIGITS = "12"


def committed(root: Path, files: Collection[str]) -> str | None:
    """The commit at HEAD, in short, if it has each of these files as it is in the work tree; else None."""
    try:
        commit = ask(root, "rev-parse", f"--short={DIGITS}", "HEAD").strip()
        known = ask(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *files).split("\0")
        changed = ask(root, "status", "--porcelain", "--untracked-files=no", "--", *files)
    except GitError:
        return None
    return commit if set(files) <= set(known) and not changed.strip() else None
