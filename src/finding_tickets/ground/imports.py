"""The files that modules of a repository may be in, by their names; nothing is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

SOURCES = "src"
# Where modules are looked for, as ``measure.loading`` has them looked for.
_FOLDERS = ("", f"{SOURCES}/")


def places_of(module: str) -> Iterator[str]:
    """Yield the possible files of a module and of its packages."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        for folder in _FOLDERS:
            yield f"{folder}{name}.py"
            yield f"{folder}{name}/__init__.py"


def module_of(path: str) -> str:
    """Return the name by which a file is imported."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[1:] if parts[0] == SOURCES else parts
    return ".".join(parts).removesuffix(".__init__")
