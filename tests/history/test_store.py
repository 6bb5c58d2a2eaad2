"""What a measurement rests on: what is there, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ground.test_commits import commit

from finding_tickets.ground.commits import Objects, Snapshot
from finding_tickets.ground.imports import ABSENT
from finding_tickets.history.walk import StoredResult, UnmeasuredCommit, WhyUnmeasured

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

RESULT = UnmeasuredCommit(kind=WhyUnmeasured.UNKNOWN, why="so")


def stored(snapshot: Snapshot, *paths: str) -> StoredResult:
    """A result that depends on what a commit has at these paths, or does not have."""
    inputs = tuple((path, "file", snapshot.file(path) or ABSENT) for path in paths)
    return StoredResult(key="key", result=RESULT, inputs=inputs)


def test_a_commit_repeats_a_measurement_until_something_comes(repository: Repository, git: Git) -> None:
    """In a folder that was there, or in one that was not; also through a link."""
    repository.write("lib/pkg/mod.py", "1")
    tree = commit(git)
    with Objects(repository.root) as objects:
        kept = stored(Snapshot(objects, tree), "lib/pkg/mod.py", "src/pkg/fast.py")
    fits = []
    for step in ("beside", "broken link", "link", "file behind it", "gone", "file"):
        if step == "beside":
            repository.write("src/other.py", "1")
        elif step == "file behind it":
            repository.write("lib/pkg/fast.py", "1")
        elif step == "gone":
            (repository.root / "src/pkg").unlink()
        elif step == "file":
            repository.write("src/pkg/fast.py", "1")
        else:
            link = repository.root / "src/pkg"
            link.unlink(missing_ok=True)
            link.symlink_to("../lib/gone" if step == "broken link" else "../lib/pkg")
        tree = commit(git, step)
        with Objects(repository.root) as objects:
            fits.append(kept.is_of(Snapshot(objects, tree), ""))
    assert [True, True, True, False, True, False] == fits


def test_what_bears_the_name_of_a_package_and_holds_no_code_is_none(repository: Repository, git: Git) -> None:
    """A submodule, and a program that is called after what it imports, stand in no module's way."""
    repository.write("train", "import train")
    commit(git)
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored")
    tree = commit(git, "a submodule")
    paths = "train/__init__.py", "train.py", "vendored/__init__.py", "vendored/x.py"
    with Objects(repository.root) as objects:
        snapshot = Snapshot(objects, tree)
        assert stored(snapshot, *paths).is_of(snapshot, "")
