"""Asking git about the repository a register is in."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
"""Variables by which a hook hands its own repository on; what is asked is the one that the folder is in."""


class GitError(Exception):
    """Why git has no answer, in a few words."""


def ask(root: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> str:
    """What git prints in the folder ``root``; paths among ``arguments`` are taken literally.

    ``settings`` are environment variables that git knows. Nothing is refreshed in passing: the index stays.

    Raises:
        GitError: Git is not installed, ``root`` is in no repository, or git does not understand.
    """
    return ask_bytes(root, *arguments, settings=settings).decode(errors="replace")


def ask_bytes(
    root: Path,
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    given: bytes | memoryview = b"",
) -> bytes:
    """What ``ask`` gives before it is decoded; ``given`` is what git reads from its input."""
    try:
        ran = subprocess.run(  # noqa: S603 - git with arguments of ours; no shell takes part
            command(root, *arguments),
            capture_output=True,
            check=False,
            env=settings_for(settings),
            input=given,
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip()
        raise GitError(said.partition("\n")[0].removeprefix("fatal: ") or f"git ended with {ran.returncode}")
    return ran.stdout


def command(root: Path, *arguments: str) -> list[str]:
    """The command line that asks git in a folder, without a pager and without the network.

    Raises:
        GitError: Git is not installed.
    """
    git = shutil.which("git")
    if git is None:
        raise GitError("git is not installed")
    # A clone that has only a part of the objects would fetch the others in passing.
    no_network = ("-c", "protocol.allow=never")
    return [git, "-C", str(root), "--literal-pathspecs", "--no-pager", *no_network, *arguments]


def settings_for(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which git is asked: no other repository's, and nothing is refreshed in passing."""
    # Messages in English, for the one that says why is passed on.
    inherited = {name: value for name, value in os.environ.items() if name not in _ANOTHER_REPOSITORY}
    return {**inherited, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **(settings or {})}


def objects(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of objects by their names; those that this clone does not have are left out.

    Raises:
        GitError: As ``ask`` does.
    """
    wanted = "\n".join(names)
    return _objects(ask_bytes(root, "cat-file", "--batch", given=wanted.encode())) if wanted else {}


def _objects(batch: bytes) -> dict[str, bytes]:
    """Objects by their names, from ``NAME blob SIZE``, a line break, the bytes and another line break."""
    found: dict[str, bytes] = {}
    start = 0
    while start < len(batch):
        end = batch.index(b"\n", start)
        name, *described = batch[start:end].split(b" ")
        size = int(described[1]) if len(described) > 1 else -1
        if size >= 0:
            found[name.decode()] = batch[end + 1 : end + 1 + size]
        start = end + 1 + size + 1
    return found


def cut_off(root: Path) -> frozenset[str]:
    """The commits at which the history of a shallow clone begins; none in a whole clone."""
    try:
        return frozenset((_shared_folder(root) / "shallow").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return frozenset()


def _shared_folder(root: Path) -> Path:
    """The folder that all work trees of the repository share, found without asking git."""
    link = next((found for folder in (root, *root.parents) if (found := folder / ".git").exists()), root)
    if link.is_dir():
        return link
    # In a further work tree or a submodule .git is a file, which names a folder that may name the shared one.
    own = link.parent / link.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    shared = own / "commondir"
    return own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own
