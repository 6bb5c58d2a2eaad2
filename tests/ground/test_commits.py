"""Files at commits, from one process of git."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from finding_tickets.ground.commits import Objects, Snapshot
from finding_tickets.ground.git import GitError, commits_since

if TYPE_CHECKING:
    from tests.conftest import Git, Repository


def commit(git: Git, message: str = "more") -> str:
    """Commit all that is there; the object of its files."""
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", message)
    return git("rev-parse", "HEAD^{tree}").strip()


def test_files_are_what_git_says_they_are(repository: Repository, git: Git) -> None:
    """Their names and contents, also where these are no plain text; a link is what it leads to."""
    repository.write("a/b/one.py", "1\n")
    repository.write("a/two words ä.md", b"\x00\n\nend")
    repository.write("a/.hidden/three.md", "3\n")
    for link, target in [("link", "b/../b/one.py"), ("out", "../../one.py"), ("round", "round.py")]:
        (repository.root / f"a/{link}.py").symlink_to(target)
    tree = commit(git)
    with Objects(repository.root) as objects:
        snapshot = Snapshot(objects, tree)
        assert git("rev-parse", "HEAD:a/b/one.py").strip() == snapshot.file("a/b/one.py")
        assert b"\x00\n\nend" == snapshot.content("a/two words ä.md")
        assert ["a/b/one.py", "a/two words ä.md"] == [path for path, _ in snapshot.files("a")]
        assert ["code.py"] == [path for path, _ in snapshot.files() if not path.startswith("a/")]
        assert b"1\n" == snapshot.content("a/link.py")
        gone = ("a/out.py", "a/round.py", "a/b", "a/b/none.py", "a/b/one.py/x", "none/x", "")
        assert [None] * len(gone) == [snapshot.file(path) for path in gone]
        inside = Snapshot(objects, tree, "a/")
        assert (b"1\n", ["b/one.py", "two words ä.md"]) == (
            inside.content("b/one.py"),
            [path for path, _ in inside.files()],
        )


def test_folders_that_are_links_are_what_they_lead_to(repository: Repository, git: Git) -> None:
    """On the way to a file, one through another, also out of the register's folder; not out of git's."""
    repository.write("lib/pkg/mod.py", "1\n")
    repository.write("lib/pkg/in/side.py", "2\n")
    links = {
        "part/src/pkg": "../../lib/pkg",
        "part/again": "src/pkg/in",
        "part/up.py": "again/../mod.py",
        "part/out": "../../..",
        "part/absolute": str(repository.root / "lib"),
        "part/round": "round/x",
    }
    (repository.root / "part/src").mkdir(parents=True)
    for link, target in links.items():
        (repository.root / link).symlink_to(target)
    tree = commit(git)
    with Objects(repository.root) as objects:
        part = Snapshot(objects, tree, "part/")
        # What follows the link counts from where that leads: "again/.." is lib/pkg, as it is on disk.
        for path in ("src/pkg/mod.py", "src/pkg/in/side.py", "again/side.py", "up.py"):
            assert (repository.root / "part" / path).read_bytes() == part.content(path)
        assert git("rev-parse", "HEAD:lib/pkg").strip() == part.folder("src/pkg")
        assert ["again/side.py"] == [path for path, _ in part.files("again")]
        outside = ("out/lib/pkg/mod.py", "absolute/pkg/mod.py", "round/mod.py", "up.py/x", "src/pkg")
        assert [None] * len(outside) == [part.file(path) for path in outside]
        assert tree == part.folder("..")


def test_what_a_clone_does_not_have_is_not_there(repository: Repository, git: Git) -> None:
    """A missing object is None, and the ones after it are still read."""
    tree = commit(git)
    with Objects(repository.root) as objects:
        assert objects.content("0" * 40) is None
        assert b"def slow(): ...\n" == Snapshot(objects, tree).content("code.py")


def test_one_process_answers_and_ends(
    repository: Repository, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is asked; afterwards it is gone."""
    for number in range(5):
        repository.write(f"a{number}/b/c.py", str(number))
    tree = commit(git)
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[bytes], *arguments: Any, **named: Any) -> None:
        started.append(self)
        begin(self, *arguments, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    with Objects(repository.root) as objects:
        assert [str(number).encode() for number in range(5)] == [
            Snapshot(objects, tree).content(f"a{number}/b/c.py") for number in range(5)
        ]
        (git_process,) = started
        assert git_process.poll() is None
    assert 0 == git_process.returncode


def test_without_a_repository_git_has_nothing_to_say(repository: Repository) -> None:
    """It ends, which is an error and no empty answer."""
    with Objects(repository.root) as objects, pytest.raises(GitError):
        objects.content("0" * 40)


def test_commits_come_after_their_parents(repository: Repository, git: Git) -> None:
    """From where the range begins to HEAD; where a merged branch began earlier, that is a beginning too."""
    commit(git, "old")
    git("branch", "side")
    commit(git, "first")
    first = git("rev-parse", "HEAD").strip()
    git("switch", "--quiet", "side")
    repository.write("side.py", "1")
    commit(git, "aside")
    git("switch", "--quiet", "main")
    repository.write("main.py", "1")
    commit(git, "second")
    git("merge", "--quiet", "--no-edit", "-m", "merged", "side")
    nodes = commits_since(repository.root, first)
    by_name = {node.commit.subject: place for place, node in enumerate(nodes)}
    assert {"old", "first", "aside", "second", "merged"} == set(by_name)
    assert ["old"] == [node.commit.subject for node in nodes if not node.parents]
    merged = nodes[by_name["merged"]]
    assert (len(nodes) - 1, (by_name["second"], by_name["aside"])) == (by_name["merged"], merged.parents)
    assert all(parent < place for place, node in enumerate(nodes) for parent in node.parents)
    aside = nodes[by_name["aside"]]
    assert {"old", "aside"} == {name for name, place in by_name.items() if aside.ancestors >> place & 1}
    assert (1 << len(nodes)) - 1 == merged.ancestors


def test_the_range_of_one_commit_is_that_commit(repository: Repository, git: Git) -> None:
    """And one that did not lead to HEAD makes no range."""
    commit(git, "old")
    git("switch", "--quiet", "--create", "side")
    repository.write("side.py", "1")
    commit(git, "aside")
    aside = git("rev-parse", "HEAD").strip()
    assert ["aside"] == [node.commit.subject for node in commits_since(repository.root, aside)]
    git("switch", "--quiet", "main")
    assert () == commits_since(repository.root, aside)
