"""Git is asked when the repository began: at most once, and only where a date could be too early."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import lint

from finding_tickets.register.load import load

if TYPE_CHECKING:
    from tests.conftest import Repository

FIRST = "2025-12-01T23:00:00+00:00"
CREATED = "| **Created** | {} |\n"


def git(folder: Path, *arguments: str) -> None:
    """Run git with an author and the day of the first commit."""
    who = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": FIRST}
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, env={**names, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    )


def rules(root: Path) -> list[str]:
    """The rules that a register breaks."""
    return [problem.rule for problem in lint(load(root))]


@pytest.mark.parametrize(
    ("created", "early"), [("2025-11-30", True), ("2025-12-01", False), ("2024-12-01 09:30", True)]
)
def test_the_day_of_the_first_commit_counts(repository: Repository, created: str, early: bool) -> None:
    """A ticket of the same day is not too early, one of the day before is."""
    repository.ticket(rows=CREATED.format(created))
    git(repository.root, "init", "-q")
    git(repository.root, "commit", "-q", "--allow-empty", "-m", "Begin")
    assert ["created-before-history"] * early == rules(repository.root)


def test_a_shallow_clone_does_not_know(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where the history is cut off, its first commit is not the repository's."""
    repository.ticket(rows=CREATED.format("2025-01-01"))
    git(repository.root, "init", "-q")
    for message in ("Begin", "Go on"):
        git(repository.root, "add", "-A")
        git(repository.root, "commit", "-q", "--allow-empty", "-m", message)
    clone = tmp_path_factory.mktemp("clones") / "shallow"
    git(repository.root, "clone", "-q", "--depth", "1", f"file://{repository.root}", str(clone))
    assert ["created-before-history"] == rules(repository.root)
    assert [] == rules(clone)
