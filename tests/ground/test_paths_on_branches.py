"""The files of all branches, in one call of git."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Git, Repository

from finding_tickets.ground.git import paths_on_branches


def commit(git: Git, branch: str) -> None:
    """Commit everything there is on a new branch, and go back."""
    git("checkout", "--quiet", "-b", branch)
    git("add", "--all")
    git("commit", "--quiet", "-m", branch)
    git("checkout", "--quiet", "main")


@pytest.fixture
def branches(repository: Repository, git: Git) -> None:
    """Branch main without tickets, and A-1 and A-2 on branches of their own."""
    git("commit", "--quiet", "--allow-empty", "-m", "Begin")
    for number in (1, 2):
        repository.ticket(f"A-{number}", path=f"tickets/deep/A-{number}.md")
        repository.write(f"elsewhere/{number}.md", f"{number}")
        commit(git, f"branch-{number}")


@pytest.mark.usefixtures("branches")
def test_local_branches(repository: Repository) -> None:
    """What is at the tip of any branch counts, below the folders that were asked for."""
    found = paths_on_branches(repository.root, ["tickets"])
    assert {"tickets/deep/A-1.md", "tickets/deep/A-2.md"} == {path for path in found if path.endswith(".md")}
    assert {"elsewhere/1.md", "tickets/deep/A-1.md"} <= paths_on_branches(repository.root, ["."])


@pytest.mark.usefixtures("branches")
def test_remote_branches(repository: Repository, git: Git, tmp_path: Path) -> None:
    """A clone has one branch of its own; the others are known as those of its remote."""
    clone = tmp_path / "clone"
    git("clone", "--quiet", str(repository.root), str(clone))
    assert "tickets/deep/A-2.md" in paths_on_branches(clone, ["tickets"])


@pytest.mark.usefixtures("branches")
def test_what_was_deleted_on_every_branch_is_free(repository: Repository, git: Git) -> None:
    """The tips count, not the past of the branches."""
    git("checkout", "--quiet", "branch-2")
    git("rm", "--quiet", "tickets/deep/A-2.md")
    git("commit", "--quiet", "-m", "Withdraw A-2")
    assert not [path for path in paths_on_branches(repository.root, ["tickets"]) if "A-2" in path]
