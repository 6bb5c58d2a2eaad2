"""Modules of torch that are first imported during a simulation are imported outside it.

Some look for a GPU as they load, and what they bind to replaced names would outlive the simulation. What is
refused in a module, of torch or not, is refused as soon as it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from simcuda.torch_api.patches import Patches
from simcuda.torch_api.refusals import REFUSED_ON_IMPORT, imported

_TORCH = "torch."


@dataclass
class _OutsideLoader(Loader):
    loader: Loader
    patches: Patches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Nothing is to know later that it was loaded in a special way.
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        is_of_torch = module.__name__.startswith(_TORCH)
        with self.patches.suspended() if is_of_torch else nullcontext():
            self.loader.exec_module(module)
        imported(module, self.patches)


@dataclass
class _OutsideFinder:
    patches: Patches

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that suspends the simulation while a module of torch runs; None for most others."""
        if not name.startswith(_TORCH) and name not in REFUSED_ON_IMPORT:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _OutsideLoader(spec.loader, self.patches)
        return spec


@contextmanager
def torch_imports_outside(patches: Patches) -> Iterator[None]:
    """Suspend ``patches`` while a module of torch is imported."""
    finder = _OutsideFinder(patches)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
