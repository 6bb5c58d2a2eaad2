"""What code would import of its repository, by its text, and what answers an import; nothing is imported."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Protocol

ABSENT = hashlib.sha256(b"").hexdigest()
"""Stands for the content of what is not there."""
SOURCES = "src"
_FOLDERS = ("", f"{SOURCES}/")
"""Where modules are looked for, as ``meter.loading`` has them looked for."""
_TEXTS = 4096
TOOL_PACKAGES = frozenset({"finding_tickets", "simcuda"})
"""What measures, and is loaded already: no code of a repository is imported by these names."""


def reach(
    read: Callable[[str], bytes | None], files: Iterable[str], modules: Iterable[str]
) -> tuple[str, ...]:
    """The paths that code rests on, beginning with these, whether or not something is there.

    ``read`` gives the text of a file of Python, or None where nothing is. A module may stand in several
    places: each of them counts. The tool itself is no part of any repository, also where it is its own.
    """
    found: dict[str, None] = {}
    waiting = [*files, *_places(modules)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            if path.endswith(".py") and (text := read(path)):
                waiting += _places(_imported(path, text))
    return tuple(found)


def _places(modules: Iterable[str]) -> Iterator[str]:
    for module in modules:
        if module.partition(".")[0] not in TOOL_PACKAGES:
            yield from places_of(module)


def places_of(module: str) -> Iterator[str]:
    """The files that a module and the packages that it is in may be."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        for folder in _FOLDERS:
            yield f"{folder}{name}.py"
            yield f"{folder}{name}/__init__.py"


def module_of(path: str) -> str:
    """The name by which a file is imported."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[1:] if parts[0] == SOURCES else parts
    return ".".join(parts).removesuffix(".__init__")


@lru_cache(maxsize=_TEXTS)
def _imported(path: str, text: bytes) -> tuple[str, ...]:
    """The names of modules, and of what may be modules, that a file imports anywhere in it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    parts = module_of(path).split(".")
    inside = parts if path.endswith("/__init__.py") else parts[:-1]
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package that the file is in, each further one that around it.
            above = inside[: len(inside) - node.level + 1] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            names = (alias.name for alias in node.names if alias.name != "*")
            found |= dict.fromkeys(f"{base}.{name}".strip(".") for name in names)
            found |= dict.fromkeys([base] if base else [])
    return tuple(found)


class FilesView(Protocol):
    """The files below a folder."""

    def digest(self, path: str) -> str | None:
        """What stands for the content of a regular file; None where there is none."""

    def names(self, folder: str) -> frozenset[str] | None:
        """What is in a folder; None where there is none."""

    def link(self, path: str) -> str | None:
        """What stands in a symbolic link; None where there is none."""


def value_of(kind: str, name: str, value: str, files: FilesView) -> str:
    """What an input of a repository is among these files; ``value`` is what it was.

    A ``file`` is its content. A ``path`` is what is there: a file, a folder or nothing. A ``link`` is where
    one leads. ``names`` are those in a folder. An ``import`` is what answers one, by the path without any
    suffix. ``no modules`` are names that no import from a folder finds: those of ``value`` that are still
    free.
    """
    match kind:
        case "file":
            return files.digest(name) or ABSENT
        case "path":
            folder = files.names(name) is not None
            return "folder" if folder else "file" if files.digest(name) else "nothing"
        case "link":
            return files.link(name) or ""
        case "names":
            # Caches come and go.
            listed = sorted((files.names(name) or frozenset()) - {"__pycache__", ".git"})
            return hashlib.sha256("\n".join(listed).encode(errors="surrogateescape")).hexdigest()
        case "import":
            return answer(name, files)
        case _:
            return " ".join(each for each in value.split() if not answer(f"{name}/{each}".lstrip("/"), files))


def answer(stem: str, files: FilesView) -> str:
    """The file that an import of ``stem`` finds, or the folder of a namespace; empty for nothing.

    An extension module has the suffix ``.so``, whatever Python it is for.
    """
    folder, _, tail = stem.rpartition("/")
    here = files.names(folder) or frozenset[str]()
    inside = files.names(stem) if tail in here else None
    for base, name, names in ((f"{stem}/__init__", "__init__", inside), (stem, tail, here)):
        if names and name in _built(names):
            return f"{base}.so"
        if names and f"{name}.py" in names:
            return f"{base}.py"
    return "" if inside is None else f"{stem}/"


@lru_cache(maxsize=_TEXTS)
def _built(names: frozenset[str]) -> frozenset[str]:
    """The extension modules among the names in a folder."""
    return frozenset(name.partition(".")[0] for name in names if name.endswith((".so", ".pyd")))
