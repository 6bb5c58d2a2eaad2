"""Files at commits, from git's objects alone: as folders, or one by one; the work tree stays as it is.

A checkout is a folder with all files of a commit. ``Objects`` reads the files of many commits by one process
of git, without a checkout.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from finding_tickets.errors import RevisionError
from finding_tickets.ground.cache import make_folder
from finding_tickets.ground.git import GitError, ask, ask_bytes, command, environment, shallow_commits

FOLDER = "checkouts"
SUBMODULE = "160000"
_NAMESPACES = ("refs/tags", "refs/heads", "refs/remotes")
_KEEP = 64
"""Unused checkouts that are kept, those used last."""
# Folders that are kept in memory: those of one commit are nearly all those of the next.
_TREES = 8192
_FOLDER, _FILE, _PROGRAM, _LINK = "40000", "100644", "100755", "120000"
_MOST_LINKS = 8


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
    """The revisions of the repository that the folder ``root`` is in, kept in the user's cache folder.

    ``commits`` are names that were resolved elsewhere, with the full hashes of what they name there.
    """

    root: Path
    commits: Mapping[str, str] = field(default_factory=dict)

    def revision(self, name: str) -> Revision:
        """What ``name`` names: a commit, a branch, a tag, or an expression such as ``HEAD~2``.

        ``RevisionError`` where that is nothing, or several things, or no commit.
        """
        if commit := self.commits.get(name):
            try:
                ask(self.root, "cat-file", "-e", f"{commit}^{{commit}}")
            except GitError:
                raise RevisionError(f"{name}: its commit {commit[:12]} is not on this machine") from None
            return Revision(name, commit)
        try:
            refs = named_commits(self.root, [name])[name]
        except GitError as error:
            raise RevisionError(f"{name}: {error}") from None
        if len(set(refs.values())) > 1:
            raise RevisionError(f"{name} is ambiguous: {' and '.join(refs)}")
        try:
            commit = ask(self.root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
        except GitError as error:
            if "ambiguous" in str(error):
                raise RevisionError(f"{name}: {error}") from None
            shallow = "; the clone is shallow, so fetch more of its history"
            hint = shallow if shallow_commits(self.root) else ""
            raise RevisionError(f"there is no revision {name}{hint}") from None
        return Revision(name, commit)

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
        """The folder ``root`` as it is at a revision, which stays as ``make_folder`` says."""

        def write(folder: Path) -> None:
            # A work tree of its own, so that the attributes are the commit's and not those of the user's.
            index = folder.with_name(f"{folder.name}.index")
            apart = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
            ask(self.root, "read-tree", revision.commit, settings=apart)
            ask(self.root, "checkout-index", "--all", settings={**apart, "GIT_LFS_SKIP_SMUDGE": "1"})

        try:
            # A commit's hash says what is in it, whichever clone it came from.
            folder = make_folder(FOLDER, revision.commit, write, _KEEP)
            return folder / ask(self.root, "rev-parse", "--show-prefix").strip()
        except (GitError, OSError) as error:
            raise RevisionError(f"{revision.name} cannot be checked out: {error}") from None


def named_commits(root: Path, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The tags and branches of each of these very names, with the commits that they lead to."""
    wanted = {f"{namespace}/{name}": name for name in names for namespace in _NAMESPACES}
    found: dict[str, dict[str, str]] = {name: {} for name in wanted.values()}
    # Git also prints what is below such a name, and of an annotated tag what it stands for.
    printed = ask(root, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", *wanted)
    for line in filter(None, printed.split("\n")):
        ref, own, behind = line.split(" ")
        if ref in wanted:
            found[wanted[ref]][ref] = behind or own
    return found


def resolve_commits(root: Path, names: Iterable[str]) -> dict[str, str]:
    """The commits of those names that mean exactly one to ``Checkouts``; git is called twice at most."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    try:
        refs = named_commits(root, wanted)
        asked = "".join(f"{name}^{{commit}}\n" for name in wanted).encode()
        said = ask_bytes(root, "cat-file", "--batch-check=%(objectname)", given=asked).decode().splitlines()
    except GitError:
        return {}
    resolved = {name: line for name, line in zip(wanted, said, strict=True) if " " not in line}
    return {name: commit for name, commit in resolved.items() if len(set(refs[name].values())) < 2}


class TreeEntry(NamedTuple):
    """What a name stands for in a folder: a file, a folder or something else, by the name of its object."""

    mode: str
    object: str


def read_objects(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of objects by their names; those that this clone does not have are left out."""
    wanted = list(names)
    if not wanted:
        return {}
    with Objects(root) as objects:
        return {name: content for name in wanted if (content := objects.content(name)) is not None}


class Objects(AbstractContextManager["Objects"]):
    """The objects of the repository that ``root`` is in, as long as the context lasts."""

    def __init__(self, root: Path) -> None:
        try:
            self._git = subprocess.Popen(  # noqa: S603 - git with arguments of ours; no shell takes part
                command(root, "cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                # An interrupt from the terminal is for the caller, whose end is git's.
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from None
        self.folder = lru_cache(maxsize=_TREES)(self._folder)
        self.sha256 = cache(self._sha256)

    def __exit__(self, *_: object) -> None:
        """End git."""
        with suppress(BrokenPipeError), self._git:
            pass

    def content(self, name: str) -> bytes | None:
        """The bytes of an object; None for one that this clone does not have."""
        stdin, stdout = cast("IO[bytes]", self._git.stdin), cast("IO[bytes]", self._git.stdout)
        with suppress(BrokenPipeError):
            stdin.write(name.encode() + b"\n")
            stdin.flush()
        # NAME KIND SIZE, or NAME missing
        said = stdout.readline().split()
        if not said:
            raise GitError("git has ended")
        return stdout.read(int(said[2]) + 1)[:-1] if len(said) == 3 else None

    def _sha256(self, name: str) -> str:
        """The SHA-256 of an object's bytes; one that this clone does not have counts as empty."""
        return hashlib.sha256(self.content(name) or b"").hexdigest()

    def _folder(self, name: str) -> Mapping[str, TreeEntry]:
        """What is in a folder, by its names; nothing where this clone does not have it."""
        content = self.content(name) or b""
        digits = len(name) // 2
        found: dict[str, TreeEntry] = {}
        start = 0
        # MODE, a blank, NAME, a zero byte, and the object's name as bytes
        while start < len(content):
            end = content.index(b"\0", start)
            mode, _, called = content[start:end].partition(b" ")
            start = end + 1 + digits
            found[os.fsdecode(called)] = TreeEntry(mode.decode(), content[end + 1 : start].hex())
        return found


@dataclass(frozen=True)
class Snapshot:
    """A folder at a commit; ``tree`` is that of the whole repository, and ``prefix`` leads to the folder."""

    objects: Objects = field(repr=False)
    tree: str
    prefix: str = ""

    def file(self, path: str) -> str | None:
        """The object of a file, or of the file that a link leads to; None where there is no such file."""
        entry = self._entry(path)
        return entry.object if entry and entry.mode in {_FILE, _PROGRAM} else None

    def folder(self, path: str) -> str | None:
        """The object of a folder, itself where the path is empty; None where there is no such folder."""
        entry = self._entry(path)
        return entry.object if entry and entry.mode == _FOLDER else None

    digest = file

    def names(self, folder: str) -> frozenset[str] | None:
        """What is in a folder; None where there is no such folder."""
        tree = self.folder(folder)
        return frozenset(self.objects.folder(tree)) if tree else None

    def link(self, path: str) -> str | None:
        """What stands in a symbolic link; None where there is none."""
        entry = self._entry(path, is_followed=False)
        return (
            os.fsdecode(self.objects.content(entry.object) or b"") if entry and entry.mode == _LINK else None
        )

    def content(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is no such file, or this clone does not have it."""
        name = self.file(path)
        return self.objects.content(name) if name else None

    def files(self, folder: str = "") -> Iterator[tuple[str, str]]:
        """The paths of all files in a folder and below, hidden folders left out, with their objects."""
        tree = self.folder(folder)
        for name, entry in self.objects.folder(tree).items() if tree else ():
            path = f"{folder}/{name}" if folder else name
            if entry.mode == _FOLDER and not name.startswith("."):
                yield from self.files(path)
            elif entry.mode in {_FILE, _PROGRAM}:
                yield path, entry.object

    def _entry(self, path: str, *, is_followed: bool = True) -> TreeEntry | None:
        """What a path leads to; None for nothing, and outside the repository.

        Links on the way are followed, and the last one unless it is what is asked for.
        """
        here = [TreeEntry(_FOLDER, self.tree)]
        waiting = f"{self.prefix}{path}".split("/")[::-1]
        links = 0
        while waiting and here:
            name = waiting.pop()
            if name in {"", "."}:
                continue
            if here[-1].mode != _FOLDER:
                return None
            if name == "..":
                here.pop()
            elif (entry := self.objects.folder(here[-1].object).get(name)) is None:
                return None
            elif entry.mode != _LINK or not (is_followed or waiting):
                here.append(entry)
            else:
                target = os.fsdecode(self.objects.content(entry.object) or b"")
                links += 1
                if links > _MOST_LINKS or target.startswith("/"):
                    return None
                waiting += target.split("/")[::-1]
        return here[-1] if here else None
