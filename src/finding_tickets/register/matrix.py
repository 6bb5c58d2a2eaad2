"""The table ``matrix`` of a configuration: on what tickets are measured beside the tool's own environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finding_tickets.register.config_values import WrongValueError, amounts
from finding_tickets.register.convention import safe_name

SIMULATED, CUDA = METERS = ("simulated", "cuda")
_VERSION = re.compile(r"\d+(\.\d+)+[a-z0-9.]*")


@dataclass(frozen=True, kw_only=True)
class Matrix:
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


def matrix(value: Any, _root: Path) -> Matrix:
    """A table with the attributes of ``Matrix``, any of them."""
    if not isinstance(value, dict):
        raise WrongValueError(f"must be a table, not {value!r}")
    for name in value:
        if name not in _AXES:
            raise WrongValueError(f"unknown key {name!r}; known keys are {', '.join(_AXES)}")
    axes = {name: _AXES[name](each) for name, each in value.items()}
    axes.setdefault("meters", METERS if axes.get("gpus") else (SIMULATED,))
    if (CUDA in axes["meters"]) != bool(axes.get("gpus")):
        raise WrongValueError(
            "the meter cuda and a table of gpus go together, as in gpus = {'NVIDIA H200' = {}}"
        )
    return Matrix(**axes)


def _meters(value: Any) -> tuple[str, ...]:
    found = _texts(value, "meters")
    if not found or not set(found) <= set(METERS):
        raise WrongValueError(f"meters must be a list of {' and '.join(METERS)}, not {value!r}")
    return found


def _torch(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise WrongValueError(f"torch must be a table of versions and interpreters, not {value!r}")
    for version, python in value.items():
        if not isinstance(python, str) or not python or not python.isprintable():
            hint = " (a version stands in quotes)" if isinstance(python, dict) else ""
            raise WrongValueError(f"torch.{version} must be the path of a Python, not {python!r}{hint}")
        if not _VERSION.fullmatch(version):
            raise WrongValueError(f"torch.{version!r} is no version of torch such as '2.11.0'")
    return value


def _gpus(value: Any) -> Mapping[str, Mapping[str, float]]:
    if not isinstance(value, dict) or not all(name.strip() for name in value):
        raise WrongValueError(f"gpus must be a table of names and resources, not {value!r}")
    return {name: amounts(each, f"gpus.{name}") for name, each in value.items()}


def _revisions(value: Any) -> tuple[str, ...]:
    """A list of revisions, each with a folder of evidence of its own that does not look like a file of it."""
    found = _texts(value, "revisions")
    folders: dict[str, str] = {}
    for revision in found:
        folder = safe_name(revision)
        other = folders.setdefault(folder, revision)
        if other != revision:
            raise WrongValueError(f"revisions {other!r} and {revision!r} share a folder; name a commit")
        if folder.endswith(".json"):
            raise WrongValueError(f"revisions must not end like evidence, as {revision!r}; name a commit")
    return found


def _texts(value: Any, name: str) -> tuple[str, ...]:
    """A list of texts, each once."""
    if not isinstance(value, list) or not all(isinstance(each, str) and each.isprintable() for each in value):
        raise WrongValueError(f"{name} must be a list of texts, not {value!r}")
    if "" in value or len(set(value)) < len(value):
        raise WrongValueError(f"{name} must have each text once, and none that is empty: {value!r}")
    return tuple(value)


_AXES: Mapping[str, Callable[[Any], Any]] = {
    "meters": _meters,
    "torch": _torch,
    "gpus": _gpus,
    "revisions": _revisions,
}
