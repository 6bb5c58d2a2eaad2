"""Find a register and read its configuration: tickets.toml, or ``[tool.tickets]`` in pyproject.toml.

A file is validated once: the resulting configuration is kept in the user's cache by the digest of the
content, so that neither TOML nor pydantic is needed to read it again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.budgets import Budget

CONFIG_FILE = "tickets.toml"
PROJECT_FILE = "pyproject.toml"

_CACHE = "config"
_KEEP = 64


@dataclass(frozen=True, kw_only=True)
class Config:
    """The configuration of a register, as docs/configuration.md explains; paths are relative to its root."""

    tickets: tuple[str, ...] = ("tickets",)
    exclude: tuple[
        str, ...
    ] = ()  # patterns of paths below them, or of names, that are no documents
    evidence: str = "evidence"
    templates: str = "templates"
    meter: str = "simulated"
    timeout: float = 120.0  # seconds
    memory: int = 8 * 1024**3
    largest_file: int = 1024**2
    lint_select: tuple[str, ...] | None = None  # None is all rules
    lint_ignore: tuple[str, ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    budgets: tuple[Budget, ...] = ()

    def is_excluded(self, path: str) -> bool:
        """Return whether a file is excluded: by its path, or by its name for patterns without a slash."""
        name = path.rpartition("/")[2]
        return any(
            fnmatchcase(path if "/" in pattern else name, pattern.removeprefix("/"))
            for pattern in self.exclude
        )

    def is_linted(self, rule: str) -> bool:
        """Return whether lint checks a rule, unless its options say otherwise."""
        return (
            self.lint_select is None or rule in self.lint_select
        ) and rule not in self.lint_ignore


def read_config(root: Path) -> Config:
    """The configuration of the register at ``root``; its defaults where there is none.

    Raises:
        BadDataError: The file cannot be read, has an unknown key or a value of the wrong type.
    """
    name = config_file_of(root)
    return config_from(root, {name: _content(root / name)} if name else {})


def config_from(root: Path, texts: Mapping[str, bytes]) -> Config:
    """The configuration of the register at ``root`` if its files had these contents, as at a commit."""
    for name in (CONFIG_FILE, PROJECT_FILE):
        if name in texts and (config := _config(root / name, texts[name])):
            break
    else:
        name, config = "", Config()
    # Where a link leads can change while the text stays, so this is checked each time.
    inside = os.path.realpath(root)
    folders = {"evidence": [config.evidence], "templates": [config.templates]}
    for key, paths in {
        **folders,
        **({"tickets": config.tickets} if name else {}),
    }.items():
        for path in paths:
            # Unlike Path.resolve, realpath does not fail where links lead in a circle.
            if not Path(os.path.realpath(root / path)).is_relative_to(inside):
                raise BadDataError(
                    f"{key}: {path} leaves the repository",
                    file=str(root / (name or path)),
                )
    return config


def config_file_of(root: Path) -> str | None:
    """The file that configures a register at ``root``, or None."""
    # Path.is_file and is_dir raise below a folder that may not be entered.
    if os.path.isfile(root / CONFIG_FILE):  # noqa: PTH113
        return CONFIG_FILE
    project = root / PROJECT_FILE
    if not os.path.isfile(project):  # noqa: PTH113
        return None
    return None if _config(project, _content(project)) is None else PROJECT_FILE


def is_repository(folder: Path) -> bool:
    """Return whether ``folder`` is configured for a register or has a folder of tickets."""
    if os.path.isdir(folder / Config.tickets[0]):  # noqa: PTH112
        return True
    return config_file_of(folder) is not None


def find_root(root: Path | None = None) -> Path:
    """The root that the user names, else (or for the current directory) the nearest register upwards.

    Raises:
        UsageError: There is none.
    """
    if root is not None and root != Path():
        return checked_root(root)
    start = Path.cwd()
    for folder in (start, *start.parents):
        if is_repository(folder):
            return folder
    hint = "tickets init makes one, --root names one"
    raise UsageError(f"no register in {start} or above it", hint=hint)


def checked_root(root: Path) -> Path:
    """Return a root that the user names. Raise ``UsageError`` if it is not a folder."""
    if not root.is_dir():
        raise UsageError(
            f"--root {root}: {'not a folder' if root.exists() else 'no such folder'}"
        )
    return root.resolve()


def repository_of(root: Path) -> Path:
    """The folder that the user names; for the current directory the register it is in, else git's work tree.

    Outside of both it is the current directory itself.
    """
    if root != Path():
        return checked_root(root)
    try:
        return find_root()
    except UsageError:
        # Most folders are in a register, and git is not asked.
        from finding_tickets.ground.git import work_tree

        return work_tree(Path.cwd()) or Path.cwd()


def folders_of(root: Path) -> tuple[Config, tuple[Path, ...]]:
    """The configuration at ``root`` and the folders that hold its documents: itself for a bare folder."""
    config = read_config(root)
    folders = tuple(root / folder for folder in config.tickets)
    return config, folders if is_repository(root) else (root,)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error


def _config(path: Path, content: bytes) -> Config | None:
    """Return the configuration in a file; None for a pyproject.toml without a table for the tool."""
    # With other defaults, words or keys the same file makes another configuration.
    depends_on = f"{__version__} {Config()} {path.name}\n".encode() + content
    name = f"{hashlib.sha256(depends_on).hexdigest()}.json"
    if kept := read_entry(_CACHE, name):
        try:
            return msgspec.json.decode(kept, type=Config | None)
        except msgspec.MsgspecError:
            # A damaged entry is made anew below.
            pass
    from finding_tickets.register.config_table import parse_config

    kept = msgspec.json.encode(
        parse_config(path, content, is_project=path.name == PROJECT_FILE)
    )
    write_entry(_CACHE, name, kept, _KEEP)
    return msgspec.json.decode(kept, type=Config | None)
