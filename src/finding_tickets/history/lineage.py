"""A function through the commits of a branch: where it was at each of them, also under another file name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.errors import UsageError
from finding_tickets.ground.checkouts import Checkouts, Revision, RevisionError
from finding_tickets.ground.git import GitError, ask, cut_off
from finding_tickets.measure.source import Source
from finding_tickets.register.history import Commit

SHALLOW = "this clone is shallow: older commits are not known"
_LOG = ("log", "--first-parent", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--no-notes")
_FORMAT = "--format=%H%x00%aI%x00%aN%x00%s"


@dataclass(frozen=True)
class Stage:
    """A commit with the file that has the function there, and the objects of all files by their paths.

    ``place`` is None where no file has it, or several might; ``reason`` says which.
    """

    commit: Commit
    place: str | None
    reason: str
    blobs: dict[str, str]


@dataclass(frozen=True)
class Lineage:
    """The stages, the oldest first, and whether the code began with the first one, as far as is known."""

    stages: tuple[Stage, ...]
    begun: bool


def lineage(root: Path, source: Source, good: str | None, bad: str) -> Lineage:
    """The commits from ``good`` to ``bad``, or from the first one that has the function; the oldest first.

    Of a merge the side counts that was merged into. Paths are relative to ``root``.

    Raises:
        UsageError: A revision is unknown, ``good`` is no ancestor of ``bad``, there is no history, or the
            file is another repository's.
    """
    checkouts = Checkouts(root)
    try:
        last = checkouts.revision(bad)
        _check_own(checkouts, last, _path(source.module))
        first = checkouts.revision(good) if good else None
        commits = _commits(root, first, last)
    except RevisionError as error:
        raise UsageError(str(error)) from None
    except GitError as error:
        raise UsageError(f"the history is not known: {error}", hint="bisect looks at commits") from None
    found = list(_placed(root, source, commits))
    begun = not good and not cut_off(root)
    while not good and found and found[-1].place is None:
        found.pop()
        begun = True
    return Lineage(tuple(reversed(found)), begun)


def _check_own(checkouts: Checkouts, revision: Revision, file: str) -> None:
    for folder in checkouts.submodules(revision):
        if file.startswith(f"{folder}/"):
            hint = "bisect needs a register there"
            raise UsageError(f"{file} is in the submodule {folder}, which has commits of its own", hint=hint)


def gaps(root: Path) -> tuple[str, ...]:
    """What of the history could not be found out."""
    return (SHALLOW,) if cut_off(root) else ()


def _commits(root: Path, first: Revision | None, last: Revision) -> list[Commit]:
    """The newest first; ``first`` is the last of them."""
    printed = ask(root, *_LOG, _FORMAT, last.commit)
    commits = [Commit(*line.split("\0", 3)) for line in printed.split("\n") if line]
    if first is None:
        return commits
    ids = [commit.id for commit in commits]
    if first.commit not in ids:
        hint = "name one that the branch went through; of a merge the side counts that was merged into"
        raise UsageError(f"--good {first}: not among the commits that led to {last}", hint=hint)
    return commits[: ids.index(first.commit) + 1]


def _placed(root: Path, source: Source, commits: list[Commit]) -> Iterator[Stage]:
    """The stages of commits, the newest first; ``seen`` is a file that is known to have the function."""
    place = _path(source.module)
    newer: str | None = None
    seen: str | None = None
    for commit in commits:
        blobs = _blobs(root, commit.id)
        here: str | None = place
        reason = ""
        if not seen or blobs.get(place) != seen:
            here, reason = _place(root, commit.id, source.function, place, blobs)
        if here is None and newer and place in (renamed := _renamed(root, commit.id, newer)):
            here, reason = renamed[place], ""
        yield Stage(commit, here, reason, blobs)
        place, newer, seen = here or place, commit.id, blobs.get(here or "")


def _path(module: str) -> str:
    return module if module.endswith(".py") else f"src/{module.replace('.', '/')}.py"


def _blobs(root: Path, commit: str) -> dict[str, str]:
    listed = ask(root, "ls-tree", "-r", "-z", commit)
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {path: described.split(" ")[2] for described, _, path in entries}


def _place(
    root: Path, commit: str, function: str, likely: str, blobs: dict[str, str]
) -> tuple[str | None, str]:
    """The file with the function at a commit, or why there is none."""
    name = function.partition(".")[0]
    if likely in blobs and re.search(rf"\b{name}\b", ask(root, "cat-file", "blob", blobs[likely])):
        return likely, ""
    pattern = rf"^(async +def|def|class) +{name}\b"
    try:
        printed = ask(root, "grep", "-l", "-z", "-E", "-e", pattern, commit)
    except GitError:
        printed = ""
    files = [line.partition(":")[2] for line in printed.split("\0") if line.endswith(".py")]
    alike = [file for file in files if PurePosixPath(file).name == PurePosixPath(likely).name]
    if len(alike or files) == 1:
        return (alike or files)[0], ""
    return None, f"{' and '.join(files)} have a {name}" if files else f"no file has a {name}"


def _renamed(root: Path, older: str, newer: str) -> dict[str, str]:
    """The older names of files that git takes for renamed between two commits, by their newer names."""
    printed = ask(root, "diff", "--name-status", "-M", "-z", "--relative", "--diff-filter=R", older, newer)
    words = printed.split("\0")[:-1]
    return {new: old for _, old, new in zip(words[::3], words[1::3], words[2::3], strict=True)}
