"""Cases from verifier files: every variant in ``fixes/<stem>/`` at every point of the file's sweep.

A verifier is any Python file with a ``workload`` that has ``build(point, device, generator)``, ``sweep``,
``read``, ``devices``, ``memory`` and ``seed``. Points are mappings from names to integers.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from simcuda.recording.case import Case, Group, Work, digest, seed_all


def files(path: Path) -> list[Path]:
    """A verifier file, or all in a folder.

    Raises:
        FileNotFoundError: There is no such file, or the folder holds none.
    """
    found = sorted(path.glob("[!_]*.py")) if path.is_dir() else [path]
    if not found or not found[0].is_file():
        raise FileNotFoundError(f"{path}: no verifier file there")
    return found


def group_name(file: Path) -> str:
    """The name of the group of a verifier file's cases."""
    return f"verifier/{file.stem}"


def groups(file: Path) -> list[Group]:
    """One group: the cases of a verifier file."""
    return [Group(group_name(file), partial(_cases, file.resolve()))]


def _cases(verifier: Path) -> Iterator[Case]:
    root = verifier.parent.parent
    workload = _module(verifier, root).workload
    variants = _variants(root / "fixes" / verifier.stem)
    function = _shared_function(variants)
    for variant in variants:
        call = getattr(_module(variant, root), function)
        source = digest(verifier.read_text(encoding="utf-8"), variant.read_text(encoding="utf-8"))
        for point in workload.sweep:
            at = ",".join(f"{name}={value}" for name, value in point.items())
            yield Case(
                f"verifier/{verifier.stem}/{variant.stem}/{at}",
                partial(_prepare, workload, call, point),
                source,
                devices=max(1, workload.devices(point)),
                memory=workload.memory(point),
            )


def _prepare(workload: Any, function: Callable[..., Any], point: Any, seed: int) -> Work:
    inputs = workload.build(point, "cuda", seed_all(workload.seed + seed))
    return lambda: workload.read(function(*inputs))


def _variants(folder: Path) -> list[Path]:
    if found := sorted(folder.glob("[!_]*.py")):
        return found
    raise FileNotFoundError(f"{folder}: holds no variant")


def _shared_function(variants: list[Path]) -> str:
    """The one public function that all variants define."""
    shared = sorted(set.intersection(*map(_public_functions, variants)))
    if len(shared) != 1:
        raise ValueError(f"{variants[0].parent}: variants must share one public function, not {shared}")
    return shared[0]


def _public_functions(file: Path) -> set[str]:
    body = ast.parse(file.read_bytes(), filename=str(file)).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}


def _module(file: Path, root: Path) -> ModuleType:
    """Import a file under the dotted name of its path, so that it can be imported by that name too."""
    for folder in (str(root / "src"), str(root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file}: not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
