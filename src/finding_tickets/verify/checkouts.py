"""Revisions of a repository as files, made of git's objects alone: work tree and index stay as they are."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from finding_tickets.register.cache import cache_folder
from finding_tickets.register.git import GitError, ask, cut_off

FOLDER = "checkouts"
SUBMODULE = "160000"
_NAMESPACES = ("refs/tags", "refs/heads", "refs/remotes")
_KEEP = 64
"""Checkouts that are kept, those used last."""
_ABANDONED_SECONDS = 24 * 3600.0
"""After this time nobody is still writing a checkout."""


class RevisionError(Exception):
    """Why a revision cannot be had, in a few words."""


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
        """What ``name`` names: a commit, a branch, a tag, or an expression such as ``HEAD~2``.

        Raises:
            RevisionError: Nothing, or several things, or no commit.
        """
        try:
            refs = self._called(name)
        except GitError as error:
            raise RevisionError(f"{name}: {error}") from None
        if len(set(refs.values())) > 1:
            raise RevisionError(f"{name} is ambiguous: {' and '.join(refs)}")
        try:
            commit = ask(self.root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
        except GitError as error:
            raise RevisionError(self._unknown(name, str(error))) from None
        return Revision(name, commit)

    def _called(self, name: str) -> dict[str, str]:
        """The tags and branches of this very name, each with the commit that it leads to."""
        places = [f"{namespace}/{name}" for namespace in _NAMESPACES]
        # Git also prints what is below such a name, and of an annotated tag what it stands for.
        printed = ask(self.root, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", *places)
        refs = (line.split(" ") for line in printed.split("\n") if line)
        return {ref: behind or own for ref, own, behind in refs if ref in places}

    def has(self, revision: Revision, file: str) -> bool:
        """Whether a revision has a file, given relative to ``root``."""
        try:
            return ask(self.root, "cat-file", "-t", f"{revision.commit}:./{file}").strip() == "blob"
        except GitError:
            return False

    def submodules(self, revision: Revision) -> list[str]:
        """The folders of a revision, relative to ``root``, that belong to other repositories."""
        entries = ask(self.root, "ls-tree", "-r", revision.commit).split("\n")
        return [entry.partition("\t")[2] for entry in entries if entry.startswith(SUBMODULE)]

    def files(self, revision: Revision) -> Path:
        """The folder ``root`` as it is at a revision.

        Raises:
            RevisionError: Git cannot write it, or there is no room.
        """
        cache = cache_folder()
        if cache is None:
            raise RevisionError(f"{revision.name} cannot be checked out: there is no cache folder")
        # A commit's hash says what is in it, whichever clone it came from.
        folder = cache / FOLDER / revision.commit
        if not folder.is_dir():
            try:
                self._make(revision.commit, folder)
            except (GitError, OSError) as error:
                raise RevisionError(f"{revision.name} cannot be checked out: {error}") from None
        os.utime(folder)
        return folder / self._prefix

    @cached_property
    def _prefix(self) -> str:
        return ask(self.root, "rev-parse", "--show-prefix").strip()

    def _make(self, commit: str, folder: Path) -> None:
        """Write a commit's files aside, then in one step where they belong, whoever else does the same."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{commit[:12]}."))
        try:
            files = aside / "files"
            files.mkdir()
            # A work tree of its own, so that the attributes are the commit's and not those of the user's.
            apart = {"GIT_INDEX_FILE": str(aside / "index"), "GIT_WORK_TREE": str(files)}
            ask(self.root, "read-tree", commit, settings=apart)
            ask(self.root, "checkout-index", "--all", settings={**apart, "GIT_LFS_SKIP_SMUDGE": "1"})
            for file in _regular_files(files):
                file.chmod(file.stat().st_mode & ~0o222)
            _replace(files, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _forget_all_but(folder.parent, _KEEP)

    def _unknown(self, name: str, reason: str) -> str:
        if "ambiguous" in reason:
            return f"{name}: {reason}"
        hint = "; the clone is shallow, so fetch more of its history" if cut_off(self.root) else ""
        return f"there is no revision {name}{hint}"


def _regular_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _replace(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _forget_all_but(folder: Path, most: int) -> None:
    """Remove the checkouts that were used longest ago, and those that were never written to their end."""
    used = {path: _last_used(path) for path in folder.iterdir()}
    made = [path for path in used if not path.name.startswith(".")]
    left = [path for path in used if path not in made and used[path] < time.time() - _ABANDONED_SECONDS]
    for old in (*sorted(made, key=used.__getitem__)[:-most], *left):
        shutil.rmtree(old, ignore_errors=True)


def _last_used(folder: Path) -> float:
    """In seconds since 1970; what another process has taken away meanwhile is not old."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return math.inf
