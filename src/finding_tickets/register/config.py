"""The configuration of a register: tickets.toml, or ``[tool.tickets]`` in pyproject.toml.

A file is validated once: what came of it is kept in the user's cache by the digest of its content, so that
neither TOML nor the model of the table is needed to read it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finding_tickets.errors import BadDataError
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.ground.version import __version__
from finding_tickets.model.vocabulary import Vocabulary, squeeze

CONFIG_FILE = "tickets.toml"
PROJECT_FILE = "pyproject.toml"
SIMULATED, CUDA = METERS = ("simulated", "cuda")

_CACHE = "config"
_KEEP = 64
_FORM = 1
"""Of what is kept: another form has other digests."""


@dataclass(frozen=True, kw_only=True)
class MatrixConfig:
    """The axes along which tickets are measured.

    Attributes:
        meters: What counts; ``cuda`` once for each of the GPUs.
        torch: Interpreters by the version of torch in them, beside the tool's own; paths from the root.
        gpus: What a machine of a Ray cluster must have, by the name of the GPU that it then has.
        revisions: Those at which variants are measured that name none, beside the work tree.
    """

    meters: tuple[str, ...] = (SIMULATED,)
    torch: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    revisions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a register may choose; paths are relative to its root.

    Attributes:
        tickets: Folders that hold documents.
        evidence: Folder that holds recorded verifications.
        templates: Folder whose templates replace those of the tool.
        meter: What counts where no command says otherwise; ``auto`` is a real GPU where one is usable.
        timeout: Seconds after which a verification is stopped.
        memory: Bytes that a verification may use.
        largest_file: Bytes that a document may have; a larger one is not read.
        lint_select: The lint rules to look at; None for all of them.
        lint_ignore: The lint rules to leave out.
        ray: Resources of a Ray cluster that a verification asks for, with how much of each.
        matrix: On what tickets are measured beside the tool's own environment, if that is declared.
        vocabulary: The words of the register.
    """

    tickets: tuple[str, ...] = ("tickets",)
    evidence: str = "evidence"
    templates: str = "templates"
    meter: str = "auto"
    timeout: float = 120.0
    memory: int = 8 * 1024**3
    largest_file: int = 1024**2
    lint_select: tuple[str, ...] | None = None
    lint_ignore: tuple[str, ...] = ()
    ray: Mapping[str, float] = field(default_factory=dict)
    matrix: MatrixConfig | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)


def read_config(root: Path) -> Config:
    """The configuration of the register at ``root``; its defaults where there is none.

    Raises:
        BadDataError: The file cannot be read, has an unknown key or a value of the wrong type.
    """
    for name in (CONFIG_FILE, PROJECT_FILE):
        if is_file(root / name) and (config := _config(root, name, _content(root / name))):
            return config
    return Config()


def config_from(root: Path, texts: Mapping[str, bytes]) -> Config:
    """The configuration of the register at ``root`` that files of it with these contents make.

    Raises:
        BadDataError: As ``read_config`` does.
    """
    for name in (CONFIG_FILE, PROJECT_FILE):
        if name in texts and (config := _config(root, name, texts[name])):
            return config
    return Config()


def is_configured(root: Path) -> str | None:
    """The file that configures a register at ``root``, or None.

    Raises:
        BadDataError: The pyproject.toml cannot be read, or has a mistake.
    """
    if is_file(root / CONFIG_FILE):
        return CONFIG_FILE
    project = root / PROJECT_FILE
    has_table = is_file(project) and _values(project, _content(project)) is not None
    return PROJECT_FILE if has_table else None


def is_file(path: Path) -> bool:
    """Whether there is a file, as far as one may look."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises below a folder that may not be entered


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error


def _values(path: Path, content: bytes) -> dict[str, Any] | None:
    """A value for each key, as JSON has it; None where a pyproject.toml has no table for the tool."""
    name = hashlib.sha256(f"{_FORM} {__version__} {path.name}\n".encode() + content).hexdigest()
    kept = read_entry(_CACHE, f"{name}.json")
    if kept is None:
        kept = _validated(path, content)
        write_entry(_CACHE, f"{name}.json", kept, _KEEP)
    try:
        values = json.loads(kept)
    except ValueError:
        # A damaged entry is made anew.
        values = json.loads(_validated(path, content))
    return values if isinstance(values, dict) else None


def _validated(path: Path, content: bytes) -> bytes:
    import tomllib

    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else None
        raise BadDataError(f"not TOML: {error}", file=str(path), line=number) from error
    if path.name == PROJECT_FILE:
        tool = table.get("tool", {})
        if not isinstance(tool, dict) or "tickets" not in tool:
            return b"null"
        table = tool["tickets"]
        if not isinstance(table, dict):
            raise BadDataError("tool.tickets must be a table", file=str(path))
    from finding_tickets.register.config_schema import validate

    return validate(table, str(path))


def _config(root: Path, name: str, content: bytes) -> Config | None:
    values = _values(root / name, content)
    if values is None:
        return None
    usual = Vocabulary()
    words: dict[str, Any] = {}
    for key in ("severities", "statuses", "outcomes", "opinions"):
        more = values.pop(key, {})
        # A spelling of one word that the register gives to another one is that one's alone.
        given = {squeeze(each) for others in more.values() for each in others}
        words[key] = {
            word: (*more.get(word, ()), *(each for each in others if squeeze(each) not in given))
            for word, others in getattr(usual, key).items()
        }
    for key in ("agents", "domains", "categories"):
        if (own := values.pop(key, None)) is not None:
            words[key] = {word: tuple(others) for word, others in own.items()}
    if "id_pattern" in values:
        words["id_pattern"] = values.pop("id_pattern")
    if "matrix" in values:
        axes = _tuples(values["matrix"])
        axes.setdefault("meters", METERS if axes.get("gpus") else (SIMULATED,))
        values["matrix"] = MatrixConfig(**axes)
    if "ray" in values:
        values["ray"] = values["ray"].get("resources", {})
    config = Config(**_tuples(values), vocabulary=Vocabulary(**words))
    # Where a link leads can change while the text stays, so that this is looked at each time.
    inside = os.path.realpath(root)
    folders = {"tickets": config.tickets, "evidence": [config.evidence], "templates": [config.templates]}
    for key, paths in folders.items():
        for path in paths:
            # Unlike Path.resolve, this raises nothing where links lead in a circle.
            if not Path(os.path.realpath(root / path)).is_relative_to(inside):
                raise BadDataError(f"{key}: {path} leaves the repository", file=str(root / name))
    return config


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
