"""When the repository of a register began."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from finding_tickets.ground.git import GitError, ask, cut_off


def first_commit(root: Path) -> date | None:
    """The day on which the first commit was written; None where git, or a shallow clone, cannot say."""
    if cut_off(root):
        return None
    try:
        days = ask(root, "log", "--max-parents=0", "--format=%as", "HEAD").split()
    except GitError:
        return None
    return min(map(date.fromisoformat, days), default=None)
