"""A work tree and the revisions that its tickets name, as objects of git: what travels to another machine.

The user's repository is read and never written: index and new objects live in a temporary one that borrows
the user's objects. Ignored files, submodules and the history stay behind.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.executors.cleanup import temporary_folder
from finding_tickets.ground.cache import make_folder
from finding_tickets.ground.git import GitError, ask, ask_bytes

FOLDER = "packs"
_KEEP = 8
"""Work trees that a machine keeps when nothing uses any, those used last."""
_BYTES_AS_THEY_ARE = "* -text -ident -filter -working-tree-encoding\n"
_NOBODY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "tickets"), ("EMAIL", "tickets@localhost"), ("DATE", "@0 +0000"))
}
"""The same tree has the same commit, whoever packs it and when."""


@dataclass(frozen=True)
class Pack:
    """The commits in a pack, first that of the work tree, and the register's folder in it.

    ``kind`` is how git names the objects: ``sha1`` or ``sha256``.
    """

    commits: tuple[str, ...]
    folder: str
    kind: str


def pack_work_tree(root: Path, commits: Iterable[str], say: Callable[[str], object]) -> tuple[Pack, bytes]:
    """The work tree that ``root`` is in, and commits of its repository; outside of any, ``root`` itself.

    What may not be read stays behind; ``say`` gets a message for each. Raises ``GitError`` and ``OSError``.
    """
    try:
        top = Path(ask(root, "rev-parse", "--show-toplevel").removesuffix("\n"))
    except GitError:
        top, folder, kind, objects = root, "", "sha1", None
    else:
        folder = ask(root, "rev-parse", "--show-prefix").removesuffix("\n")
        kind = ask(root, "rev-parse", "--show-object-format").strip()
        objects = (top / ask(top, "rev-parse", "--git-path", "objects").removesuffix("\n")).resolve()
    with temporary_folder("tickets-pack-") as temporary:
        own = Path(temporary) / "git"
        ask(top, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}", str(own))
        _write(own / "info/attributes", _BYTES_AS_THEY_ARE)
        settings = {"GIT_DIR": str(own), "GIT_WORK_TREE": str(top)}
        if objects:
            _write(own / "objects/info/alternates", f"{objects}\n")
        # Tracked files, and what is neither tracked nor ignored; without a repository all there are.
        options = ("-z", "--cached", "--others", "--exclude-standard")
        listed = ask_bytes(top, "ls-files", *options, settings={} if objects else settings)
        names = []
        for name in dict.fromkeys(filter(None, listed.split(b"\0"))):
            path = Path(top, os.fsdecode(name))
            # A folder is another repository: a submodule, or one that happens to be here.
            if path.is_symlink() or (path.is_file() and os.access(path, os.R_OK)):
                names.append(name + b"\0")
            elif path.is_file():
                say(f"stays behind, as it cannot be read: {os.fsdecode(name)}")
        # What is gone since it was listed is removed, and no error.
        given = b"".join(names)
        ask_bytes(top, "update-index", "--add", "--remove", "-z", "--stdin", settings=settings, given=given)
        tree = ask(top, "write-tree", settings=settings).strip()
        here = ask(top, "commit-tree", tree, "-m", "work tree", settings={**settings, **_NOBODY}).strip()
        pack = Pack((here, *sorted(set(commits))), folder, kind)
        wanted = ask_bytes(top, "rev-list", "--objects", "--no-walk", *pack.commits, settings=settings)
        return pack, ask_bytes(top, "pack-objects", "--stdout", "--quiet", settings=settings, given=wanted)


def unpack_work_tree(pack: Pack, objects: bytes | memoryview) -> Path:
    """The register's folder of a pack, in a repository of its own in the cache of this machine."""

    def unpack(folder: Path) -> None:
        ask(folder, "init", "--quiet", "--template=", f"--object-format={pack.kind}")
        git = folder / ".git"
        # The history stayed where it was.
        _write(git / "shallow", "".join(f"{commit}\n" for commit in pack.commits))
        ask_bytes(folder, "index-pack", "--stdin", given=objects)
        attributes = _write(git / "info/attributes", _BYTES_AS_THEY_ARE)
        ask(folder, "read-tree", pack.commits[0])
        ask(folder, "checkout-index", "--all")
        # Only the check-out must not convert; what is asked of git later follows the repository's own.
        attributes.unlink()

    name = hashlib.sha256(" ".join(pack.commits).encode()).hexdigest()
    try:
        folder = make_folder(FOLDER, name, unpack, _KEEP)
    except GitError as error:
        raise GitError(f"the work tree cannot be unpacked: {error}") from None
    return (folder / pack.folder).resolve()


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
