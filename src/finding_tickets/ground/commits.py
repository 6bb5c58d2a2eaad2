"""Checkouts: folders with all files of a commit, from git's objects alone; the work tree stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from finding_tickets.errors import RevisionError
from finding_tickets.ground.cache import make_folder
from finding_tickets.ground.git import GitError, ask, shallow_commits

FOLDER = "checkouts"
_NAMESPACES = ("refs/tags", "refs/heads", "refs/remotes")
# Unused checkouts that are kept, those used last.
_KEEP = 64


@dataclass(frozen=True)
class Revision:
    """A revision as it was written, and the full hash of the commit that it names now."""

    name: str
    commit: str

    def __str__(self) -> str:
        """The name as it was written."""
        return self.name


@dataclass(frozen=True)
class Checkouts:
    """The revisions of the repository that the folder ``root`` is in, kept in the user's cache folder."""

    root: Path

    def revision(self, name: str) -> Revision:
        """Resolve ``name``: a commit, a branch, a tag, or an expression such as ``HEAD~2``.

        Raise ``RevisionError`` if it is unknown, ambiguous or not a commit.
        """
        try:
            refs = named_commits(self.root, name)
        except GitError as error:
            raise RevisionError(f"{name}: {error}") from None
        if len(set(refs.values())) > 1:
            raise RevisionError(f"{name} is ambiguous: {' and '.join(refs)}")
        try:
            commit = ask(
                self.root,
                "rev-parse",
                "--verify",
                "--end-of-options",
                f"{name}^{{commit}}",
            ).strip()
        except GitError as error:
            if "ambiguous" in str(error):
                raise RevisionError(f"{name}: {error}") from None
            shallow = "; the clone is shallow, so fetch more of its history"
            hint = shallow if shallow_commits(self.root) else ""
            raise RevisionError(f"there is no revision {name}{hint}") from None
        return Revision(name, commit)

    def has(self, revision: Revision, file: str) -> bool:
        """Return whether a revision has a file, given relative to ``root``."""
        try:
            return (
                ask(self.root, "cat-file", "-t", f"{revision.commit}:./{file}").strip()
                == "blob"
            )
        except GitError:
            return False

    def files(self, revision: Revision) -> Path:
        """Return the folder ``root`` at a revision, which stays as ``make_folder`` says."""

        def write(folder: Path) -> None:
            # A work tree of its own, so that the attributes are the commit's and not those of the user's.
            index = folder.with_name(f"{folder.name}.index")
            apart = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
            ask(self.root, "read-tree", revision.commit, settings=apart)
            ask(
                self.root,
                "checkout-index",
                "--all",
                settings={**apart, "GIT_LFS_SKIP_SMUDGE": "1"},
            )

        try:
            # A commit's hash says what is in it, whichever clone it came from.
            folder = make_folder(FOLDER, revision.commit, write, _KEEP)
            return folder / ask(self.root, "rev-parse", "--show-prefix").strip()
        except (GitError, OSError) as error:
            raise RevisionError(
                f"{revision.name} cannot be checked out: {error}"
            ) from None


def named_commits(root: Path, name: str) -> dict[str, str]:
    """Return the tags and branches with exactly this name, and their commits."""
    wanted = [f"{namespace}/{name}" for namespace in _NAMESPACES]
    found: dict[str, str] = {}
    # Git also prints what is below such a name, and of an annotated tag what it stands for.
    printed = ask(
        root,
        "for-each-ref",
        "--format=%(refname) %(objectname) %(*objectname)",
        *wanted,
    )
    for line in filter(None, printed.split("\n")):
        ref, own, behind = line.split(" ")
        if ref in wanted:
            found[ref] = behind or own
    return found
