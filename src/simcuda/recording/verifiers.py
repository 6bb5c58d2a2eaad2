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

from simcuda.recording.case import Case, Work, digest, seed_all


def files(path: Path) -> list[Path]:
    """A verifier file, or all in a folder.

    Raises:
        FileNotFoundError: There is no such file, or the folder holds none.
    """
    found = sorted(path.glob("[!_]*.py")) if path.is_dir() else [path]
    if not found or not found[0].is_file():
        raise FileNotFoundError(f"{path}: no verifier file there")
    return found


def cases(verifier: Path) -> Iterator[Case]:
    """The cases of a verifier file, given by its resolved path."""
    root = verifier.parent.parent
    workload = _module(verifier, root).workload
    folder = root / "fixes" / verifier.stem
    variants = sorted(folder.glob("[!_]*.py"))
    if not variants:
        raise FileNotFoundError(f"{folder}: holds no variant")
    # The one public function that all variants define is what runs.
    public = []
    for variant in variants:
        body = ast.parse(variant.read_bytes(), filename=str(variant)).body
        public.append({n.name for n in body if isinstance(n, ast.FunctionDef) and n.name[0] != "_"})
    shared = sorted(set.intersection(*public))
    if len(shared) != 1:
        raise ValueError(f"{folder}: variants must share one public function, not {shared}")
    for variant in variants:
        function = getattr(_module(variant, root), shared[0])
        source = digest(verifier.read_text(encoding="utf-8"), variant.read_text(encoding="utf-8"))
        for point in workload.sweep:
            at = ",".join(f"{name}={value}" for name, value in point.items())
            yield Case(
                f"verifier/{verifier.stem}/{variant.stem}/{at}",
                partial(_prepare, workload, function, point),
                source,
                devices=max(1, workload.devices(point)),
                memory=workload.memory(point),
            )


def _prepare(workload: Any, function: Callable[..., Any], point: Any, seed: int) -> Work:
    inputs = workload.build(point, "cuda", seed_all(workload.seed + seed))
    return lambda: workload.read(function(*inputs))


def _module(file: Path, root: Path) -> ModuleType:
    """Import a file under the dotted name of its path, so that it can be imported by that name too."""
    # A verifier may import the code of its own repository.
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
