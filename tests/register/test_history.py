"""What git's history says of a ticket, and what is said where git cannot know."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Git, Repository

from finding_tickets.model.vocabulary import ID_PATTERN
from finding_tickets.register.history import History, read_history


def history(root: Path, path: str = "tickets/A-1.md", ticket_id: str = "A-1") -> History:
    """The history of a ticket in a register with the usual IDs."""
    return read_history(root, path, ticket_id, ID_PATTERN, "evidence")


def commit(git: Git, message: str, *, who: str = "Ada", when: str = "2026-01-02") -> None:
    """Commit everything there is."""
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", message, who=who, when=when)


def subjects(history: History) -> list[str]:
    """The first lines of the commits that name the ticket."""
    return [commit.subject for commit in history.naming]


def test_first_last_and_authors(repository: Repository, git: Git) -> None:
    """The first commit of the file, its last change, and who wrote those, each once and in order."""
    repository.ticket("A-1")
    commit(git, "File it", who="Ada", when="2026-01-02")
    repository.ticket("A-1", severity="P1")
    commit(git, "Raise it", who="Bob", when="2026-01-03")
    repository.ticket("A-1", severity="P0")
    commit(git, "Raise it more", who="Bob", when="2026-01-04")
    commit(git, "Something else", who="Eve", when="2026-01-05")
    found = history(repository.root)
    assert found.created
    assert found.updated
    assert ("2026-01-02T12:00:00+00:00", "Ada", "File it") == found.created[1:]
    assert ("2026-01-04T12:00:00+00:00", "Bob", "Raise it more") == found.updated[1:]
    assert git("rev-parse", "HEAD~3", "HEAD~1").split() == [found.created.id, found.updated.id]
    assert (("Ada", "Bob"), ()) == (found.authors, found.gaps)


def test_renames_are_followed(repository: Repository, git: Git) -> None:
    """A file that moved to another folder, changed on the way, began where it was written."""
    repository.ticket("A-1", path="tickets/open/A-1.md", status="open")
    commit(git, "File it")
    git("mv", "tickets/open/A-1.md", "tickets/A-1.md")
    repository.ticket("A-1", status="fixed")
    commit(git, "Close it")
    found = history(repository.root)
    assert ("File it", "Close it") == (found.created and found.created[3], found.updated and found.updated[3])


def test_a_ticket_made_from_another_begins_with_itself(repository: Repository, git: Git) -> None:
    """One template makes all tickets alike; neither a copy nor what looks like a rename is this ticket."""
    repository.ticket("A-2")
    repository.ticket("A-3")
    commit(git, "File the others")
    # A-1 resembles A-2, which stays: git calls it a copy. It would be called a rename of what goes away.
    repository.ticket("A-1")
    commit(git, "File A-1")
    git("mv", "tickets/A-3.md", "tickets/old-A-3.md")
    repository.ticket("A-4")
    commit(git, "File A-4, move A-3")
    first = [
        found.created and found.created.subject
        for found in (history(repository.root, f"tickets/{name}.md", name) for name in ("A-1", "A-4"))
    ]
    assert ["File A-1", "File A-4, move A-3"] == first


def test_commits_that_name_the_ticket(repository: Repository, git: Git) -> None:
    """The ID as a whole word in any case, in the first line or below; an ID that contains it is another."""
    repository.ticket("A-1")
    for number, message in enumerate(
        [
            "Fix a-1 at last",
            "Tidy up\n\nThis also closes (A-1).",
            "A-11",
            "A-1-2",
            "BA-1",
            "B-A-1",
            "A 1",
            "A-1: x",
        ]
    ):
        commit(git, message, when=f"2026-02-0{number + 1}")
    assert ["A-1: x", "Tidy up", "Fix a-1 at last"] == subjects(history(repository.root))


def test_a_file_that_is_not_committed(repository: Repository, git: Git) -> None:
    """What is only in the work tree has no history, yet commits may name it."""
    commit(git, "Look into A-1")
    repository.ticket("A-1")
    found = history(repository.root)
    assert (None, None, ()) == (found.created, found.updated, found.authors)
    assert ["Look into A-1"] == subjects(found)
    assert ("tickets/A-1.md is in no commit of the current branch",) == found.gaps


def test_without_git(repository: Repository, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no git, that is the reason."""
    repository.ticket("A-1")
    commit(git, "File it")
    monkeypatch.setenv("PATH", str(repository.root))
    assert History(gaps=("the history is not known: git is not installed",)) == history(repository.root)


@pytest.mark.parametrize("worktree", [False, True])
def test_a_shallow_clone(repository: Repository, git: Git, tmp_path: Path, worktree: bool) -> None:
    """The commit at which a clone was cut off is not taken for the first of the files in it."""
    repository.ticket("A-1")
    commit(git, "File it")
    commit(git, "Go on")
    repository.ticket("A-2")
    commit(git, "File another")
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--depth=2", f"file://{repository.root}", str(clone))
    if worktree:
        git("-C", str(clone), "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
        clone = tmp_path / "tree"
    found = history(clone)
    assert (None, "Go on") == (found.created, found.updated and found.updated.subject)
    assert ("this clone is shallow: older commits are not known",) == found.gaps
    other = history(clone, "tickets/A-2.md", "A-2")
    assert "File another" == (other.created and other.created.subject)


def test_settings_of_the_user_do_not_matter(repository: Repository, git: Git) -> None:
    """What a user has git print by default is not taken for a field."""
    repository.ticket("A-1")
    commit(git, "File A-1")
    before = history(repository.root)
    for name, value in {
        "log.showSignature": "true",
        "color.ui": "always",
        "log.showRoot": "false",
        "log.decorate": "full",
        "diff.renames": "false",
        "format.pretty": "fuller",
    }.items():
        git("config", name, value)
    assert before == history(repository.root)
    assert before.created
