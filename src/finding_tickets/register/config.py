"""The configuration of a register: tickets.toml, or ``[tool.tickets]`` in pyproject.toml, key by key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finding_tickets.errors import BadDataError
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config_values import (
    WrongValueError,
    folder,
    folders,
    meter,
    names,
    pattern,
    ray,
    seconds,
    size,
    spellings_of,
    words,
)
from finding_tickets.register.matrix import Matrix, matrix

CONFIG_FILE = "tickets.toml"
PROJECT_FILE = "pyproject.toml"

_SETTINGS: Mapping[str, Callable[[Any, Path], Any]] = {
    "tickets": folders,
    "evidence": folder,
    "templates": folder,
    "meter": meter,
    "timeout": seconds,
    "memory": size,
    "largest_file": size,
    "lint_select": names,
    "lint_ignore": names,
    "ray": ray,
    "matrix": matrix,
}
_VOCABULARY: Mapping[str, Callable[[Any, Path], Any]] = {
    "id_pattern": pattern,
    **{name: spellings_of(name) for name in ("severities", "statuses", "outcomes", "opinions")},
    "agents": words,
    "domains": words,
    "categories": words,
}


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
    matrix: Matrix | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)


def read_config(root: Path) -> Config:
    """The configuration of the register at ``root``; its defaults where there is none.

    Raises:
        BadDataError: The file cannot be read, has an unknown key or a value of the wrong type.
    """
    own, project = root / CONFIG_FILE, root / PROJECT_FILE
    if is_file(own):
        return _config(own, _load(own))
    table = project_table(project)
    return Config() if table is None else _config(project, table)


def config_from(root: Path, texts: Mapping[str, bytes]) -> Config:
    """The configuration of the register at ``root`` that files of it with these contents make.

    Raises:
        BadDataError: As ``read_config`` does.
    """
    if CONFIG_FILE in texts:
        return _config(root / CONFIG_FILE, _parsed(texts[CONFIG_FILE], root / CONFIG_FILE))
    project = root / PROJECT_FILE
    table = _table(_parsed(texts.get(PROJECT_FILE, b""), project), project)
    return Config() if table is None else _config(project, table)


def is_file(path: Path) -> bool:
    """Whether there is a file, as far as one may look."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises below a folder that may not be entered


def project_table(path: Path) -> Mapping[str, Any] | None:
    """``[tool.tickets]`` of a pyproject.toml, or None.

    Raises:
        BadDataError: The file cannot be read, or has something else in its place.
    """
    return _table(_load(path), path) if is_file(path) else None


def _table(project: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    tool = project.get("tool", {})
    table = tool.get("tickets") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise BadDataError("tool.tickets must be a table", file=str(path))
    return table


def _load(path: Path) -> dict[str, Any]:
    try:
        return _parsed(path.read_bytes(), path)
    except OSError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else None
        raise BadDataError(f"not TOML: {error}", file=str(path), line=number) from error


def _config(path: Path, table: Mapping[str, Any]) -> Config:
    values = {key: _value(path, key, value) for key, value in table.items()}
    chosen = {key: values.pop(key) for key in list(values) if key in _VOCABULARY}
    return Config(**values, vocabulary=Vocabulary(**chosen))


def _value(path: Path, key: str, value: Any) -> Any:
    """One value, checked; every error names the file and the key."""
    known = {**_SETTINGS, **_VOCABULARY}
    if key not in known:
        raise BadDataError(f"unknown key {key!r}", file=str(path), hint=_suggestion(key, known))
    try:
        return known[key](value, path.parent)
    except WrongValueError as error:
        raise BadDataError(f"{key}: {error}", file=str(path)) from error


def _suggestion(key: str, known: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(key, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"
