"""The code as it was found against the fix."""

from __future__ import annotations

from tests.conftest import Git, Repository

from finding_tickets.report.html import CodeDiff, DiffLine, code_diff

PLACES = {"found": "fixes/a/found.py:f", "fix": "fixes/a/fix.py:f"}


def made(repository: Repository, places: dict[str, str] = PLACES) -> CodeDiff | None:
    """The difference of two files of the repository."""
    repository.write("fixes/a/found.py", "def f():\n    wait()\n")
    repository.write("fixes/a/fix.py", "def f():\n    return\n")
    return code_diff(places, repository.root)


def test_lines_have_their_numbers_before_and_after(repository: Repository) -> None:
    """A line that one of the files does not have has no number there."""
    found = made(repository)
    assert found
    assert (
        (DiffLine(1, 1, "def f():"), DiffLine(2, None, "    wait()"), DiffLine(None, 2, "    return")),
    ) == found.hunks
    assert ("found", "fix") == (found.before, found.after)


def test_far_changes_are_pieces_of_their_own(repository: Repository) -> None:
    """Three lines around each change are shown, and what is between them is not."""
    lines = [f"line {number}" for number in range(20)]
    repository.write("found.py", "\n".join(lines))
    repository.write("fix.py", "\n".join(["first", *lines[1:-1], "last"]))
    found = code_diff({"found": "found.py:f", "fix": "fix.py:f"}, repository.root)
    assert found
    assert [5, 5] == [len(hunk) for hunk in found.hunks]


def test_without_a_fix_the_next_best_is_compared(repository: Repository) -> None:
    """What was applied, or else what was recommended, or else any other variant."""
    repository.write("b.py", "b\n")
    others = {"mine": "b.py:f", "recommended": "b.py:f", "applied": "b.py:f"}
    for name in ("applied", "recommended", "mine"):
        found = made(repository, {"found": PLACES["found"]} | others)
        assert found
        assert name == found.after
        del others[name]
    assert made(repository, {"found": PLACES["found"]}) is None
    assert made(repository, {"fix": PLACES["fix"]}) is None


def test_files_outside_and_files_that_are_gone_are_not_read(repository: Repository) -> None:
    """A ticket may name any path; only those of the repository are opened."""
    (repository.root.parent / "secret.py").write_text("secret")
    for place in ("../secret.py:f", "/etc/passwd:f", "gone.py:f", "package.module:f", "fixes:f", "a\0b:f"):
        assert made(repository, {"found": place, "fix": PLACES["fix"]}) is None


def test_a_variant_at_a_revision_is_read_there(repository: Repository, git: Git) -> None:
    """The file as it was, not as it is."""
    repository.write("f.py", "old\n")
    git("add", "."), git("commit", "--quiet", "-m", "old")
    repository.write("f.py", "new\n")
    found = code_diff({"found": "f.py:f@HEAD", "fix": "f.py:f"}, repository.root)
    assert found
    assert ((DiffLine(1, None, "old"), DiffLine(None, 1, "new")),) == found.hunks
    assert code_diff({"found": "f.py:f@nowhere", "fix": "f.py:f"}, repository.root) is None
