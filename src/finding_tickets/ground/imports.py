"""What code would import of its repository, as far as its text says; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

SOURCES = "src"
_FOLDERS = ("", f"{SOURCES}/")
"""Where modules are looked for, as ``meter.loading`` has them looked for."""
_TEXTS = 4096
_TOOL = frozenset({"finding_tickets", "simcuda"})
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
        if module.partition(".")[0] not in _TOOL:
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
