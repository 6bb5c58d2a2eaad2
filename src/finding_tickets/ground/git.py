"""Git: everything that is asked of it goes through here, and every log through one parser."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# Variables by which a hook hands on its own repository; what is asked is the one that the folder is in.
_ANOTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)
# A hash is that of a commit as it was made: what a clone has put in its place does not count.
_AS_COMMITTED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
# NUL ends each field, for it is what no field can hold.
_LOG_FORMAT = "--format=%x00%H%x00%aI%x00%aN%x00%s%x00%B%x00"
_LOG_FIELDS = 6
_LOG = (
    *("-c", "core.quotePath=false", "-c", "log.showRoot=true"),
    *(
        "log",
        "--no-show-signature",
        "--no-color",
        "--encoding=UTF-8",
        "--no-notes",
        _LOG_FORMAT,
    ),
)
SHORT_HASH = 12
# Folders that hold code of others, where git does not say which files are the repository's.
FOREIGN_FOLDERS = frozenset(
    ["node_modules", "site-packages", "dist-packages", "third_party", "vendor"]
)


class GitError(Exception):
    """The reason why git has no answer, in a few words."""


class Commit(NamedTuple):
    """A commit: its whole id, when (ISO 8601) and by whom it was written, the first line of its message."""

    id: str
    date: str
    author: str
    subject: str


class LogEntry(NamedTuple):
    """A commit as a log shows it."""

    commit: Commit
    message: str
    changes: tuple[
        str, ...
    ]  # lines that options such as --name-status have git print below it


def ask(root: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> str:
    """Return the output of git in the folder ``root``; paths among ``arguments`` are literal.

    ``settings`` are environment variables that git knows. Nothing is refreshed in passing: the index stays.

    Raises:
        GitError: Git is not installed, ``root`` is in no repository, or git does not understand.
    """
    return ask_bytes(root, *arguments, settings=settings).decode(errors="replace")


def ask_bytes(
    root: Path, *arguments: str, settings: Mapping[str, str] | None = None
) -> bytes:
    """Return the output of git as bytes."""
    try:
        ran = subprocess.run(  # noqa: S603 - git with arguments of ours; no shell takes part
            command(root, *arguments),
            capture_output=True,
            check=False,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip()
        raise GitError(
            said.partition("\n")[0].removeprefix("fatal: ")
            or f"git ended with {ran.returncode}"
        )
    return ran.stdout


def command(root: Path, *arguments: str) -> list[str]:
    """Return the command line that asks git in a folder, without a pager and without the network."""
    git = shutil.which("git")
    if git is None:
        raise GitError("git is not installed")
    # A clone that has only a part of the objects would fetch the others in passing.
    no_network = ("-c", "protocol.allow=never")
    return [
        git,
        "-C",
        str(root),
        "--literal-pathspecs",
        "--no-pager",
        *no_network,
        *arguments,
    ]


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for git: of no other repository, and without refreshing the index."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in _ANOTHER_REPOSITORY
    }
    # Messages are in English, because the one that says why is passed on.
    return {
        **inherited,
        **_AS_COMMITTED,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        **(settings or {}),
    }


def log(root: Path, *arguments: str) -> Iterator[LogEntry]:
    """Yield the commits that ``git log`` prints with these arguments."""
    fields = ask(root, *_LOG, *arguments).split("\0")[1:]
    for start in range(0, len(fields), _LOG_FIELDS):
        *commit, message, changes = fields[start : start + _LOG_FIELDS]
        lines = tuple(filter(None, changes.split("\n")))
        yield LogEntry(Commit(*commit), message, lines)


def work_tree(folder: Path) -> Path | None:
    """Return the top of the work tree that holds a folder; None if there is none, or no git."""
    try:
        return Path(ask(folder, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()
    except GitError:
        return None


def repository_files(root: Path) -> frozenset[str] | None:
    """Return the files below ``root`` that are in git or could be added; None without git.

    What is in git need not be in the work tree any more.
    """
    try:
        listed = ask(
            root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
        )
    except GitError:
        return None
    return frozenset(filter(None, listed.split("\0")))


def files_below(root: Path) -> Iterator[str]:
    """Yield the files below ``root``, without hidden folders and code of others."""
    for folder, names, files in os.walk(root):
        names[:] = [
            name
            for name in names
            if not name.startswith(".") and name not in FOREIGN_FOLDERS
        ]
        place = Path(folder).relative_to(root)
        yield from ((place / file).as_posix() for file in files)


def paths_on_branches(root: Path, folders: Iterable[str]) -> frozenset[str]:
    """Return the paths below ``folders`` at the tip of every local and remote-tracking branch.

    Git is called once. Without git or a repository the answer is empty.
    """
    tips = ("--no-walk=unsorted", "--missing=allow-any", "--branches", "--remotes")
    try:
        objects = ask(root, "rev-list", "--objects", *tips, "--", *folders)
    except GitError:
        return frozenset()
    return frozenset(
        path for line in objects.splitlines() if (path := line.partition(" ")[2])
    )


def commit_containing(root: Path, files: Collection[str]) -> str | None:
    """Return the short hash of HEAD if it has these files as they are in the work tree, else None."""
    try:
        commit = ask(root, "rev-parse", f"--short={SHORT_HASH}", "HEAD").strip()
        known = ask(
            root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *files
        ).split("\0")
        changed = ask(
            root, "status", "--porcelain", "--untracked-files=no", "--", *files
        )
    except GitError:
        return None
    return commit if set(files) <= set(known) and not changed.strip() else None


def untracked_among(root: Path, files: Collection[str]) -> list[str]:
    """Return which of these files git has not; a folder that it has nothing of stands for its files."""
    try:
        listed = ask(root, "ls-files", "-z", "--others", "--directory").split("\0")
    except GitError:
        return []
    found = []
    for entry in filter(None, listed):
        if any(f"{file}/".startswith(f"{entry.rstrip('/')}/") for file in files):
            found.append(entry)
    return found


def changed_files(root: Path, commit: str) -> frozenset[str]:
    """Return the files below ``root`` that have changed since a commit, or are gone or new in git."""
    options = ("--name-only", "-z", "--relative", "--no-renames")
    # This command refreshes the index without asking whether it may.
    quietly = ("-c", "diff.autoRefreshIndex=false")
    listed = ask_bytes(root, *quietly, "diff", *options, commit, "--").split(b"\0")
    return frozenset(os.fsdecode(name) for name in listed if name)


def last_author(root: Path, file: str, line: int) -> str:
    """Return who changed a line last; empty where git cannot tell, or it is not committed."""
    try:
        said = ask(root, "blame", "--porcelain", "-L", f"{line},{line}", "--", file)
    except GitError:
        return ""
    author = next(
        (each[7:] for each in said.split("\n") if each.startswith("author ")), ""
    )
    return "" if author == "Not Committed Yet" else author


def shallow_commits(root: Path) -> frozenset[str]:
    """Return the commits at which the history of a shallow clone begins; none in a whole clone."""
    try:
        file = root / ask(root, "rev-parse", "--git-path", "shallow").rstrip("\n")
        return frozenset(file.read_text(encoding="ascii").split())
    except (GitError, OSError, ValueError):
        return frozenset()
