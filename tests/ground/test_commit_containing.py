"""Code is pinned to the commit at HEAD only where that has every file as it is."""

from __future__ import annotations

import pytest
from tests.conftest import Git, Repository

from finding_tickets.ground.git import commit_containing

FILES = ["code.py", "pkg/mod.py"]


@pytest.fixture
def head(repository: Repository, git: Git) -> str:
    """The abbreviated commit that has both files."""
    repository.write("pkg/mod.py", "x = 1\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    return git("rev-parse", "--short=12", "HEAD").strip()


def test_committed_code(repository: Repository, head: str) -> None:
    """What HEAD has as it is here, whatever else has changed."""
    repository.write("other.py", "")
    assert head == commit_containing(repository.root, FILES)
    assert head == commit_containing(repository.root / "pkg", ["mod.py"])


def test_changed_code(repository: Repository, git: Git, head: str) -> None:
    """A changed file, staged or not, is not what HEAD has; neither is one that is gone."""
    repository.write("pkg/mod.py", "x = 2\n")
    assert commit_containing(repository.root, FILES) is None
    git("add", "-A")
    assert commit_containing(repository.root, FILES) is None
    assert head == commit_containing(repository.root, FILES[:1])
    (repository.root / "code.py").unlink()
    assert commit_containing(repository.root, FILES[:1]) is None


def test_new_code(repository: Repository, head: str) -> None:
    """Files that git does not know, or ignores, cannot be had again."""
    repository.write("new.py", "")
    repository.write(".gitignore", "made.py\n")
    repository.write("made.py", "")
    assert head
    assert [None, None] == [
        commit_containing(repository.root, [*FILES, name]) for name in ("new.py", "made.py")
    ]
