"""Modules of torch that are first imported during a simulation are imported outside it.

Some look for a GPU as they load, and what they bind to replaced names would outlive the simulation. What is
refused in a module, of torch or not, is refused as soon as it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from simcuda.torch_api.patches import Patches
from simcuda.torch_api.refusals import REFUSED_ON_IMPORT, imported


class _OutsideLoader(Loader):
    def __init__(self, loader: Loader, patches: Patches) -> None:
        self._loader = loader
        self._patches = patches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        if _is_of_torch(module.__name__):
            with self._patches.suspended():
                self._loader.exec_module(module)
        else:
            self._loader.exec_module(module)
        imported(module, self._patches)


class _OutsideFinder:
    def __init__(self, patches: Patches) -> None:
        self._patches = patches

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that suspends the simulation while a module of torch runs; None for most others."""
        if not _is_of_torch(name) and name not in REFUSED_ON_IMPORT:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _OutsideLoader(spec.loader, self._patches)
        return spec


def _is_of_torch(module: str) -> bool:
    return module.startswith("torch.")


@contextmanager
def torch_imports_outside(patches: Patches) -> Iterator[None]:
    """Suspend ``patches`` while a module of torch is imported."""
    finder = _OutsideFinder(patches)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
