"""Stand-ins for packages that a verifier does without: heavy, missing, of no account for what is counted."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Inert(type):
    """Makes classes whose attributes are such classes too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(f"{cls.__qualname__}.{name}")


class _Nothing(metaclass=_Inert):
    """Can be made, called, entered, iterated over and derived from, and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002 - takes whatever it is given
        super().__init__()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # As a decorator it leaves what it is given as it was.
        if cls.__module__ == __name__ and len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(self)()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else type(self)()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False


def _named(name: str) -> type:
    return _Inert(name.rpartition(".")[2], (_Nothing,), {"__module__": __name__, "__qualname__": name})


class _Stub(ModuleType):
    """A module in which every name is something inert."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _named(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class _Stubs(MetaPathFinder, Loader):
    """Finds the stubbed packages and everything in them."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A stub for a package of ours, or for what is in one."""
        del path, target
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty stub."""
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stub has no code."""


_FINDER = _Stubs()


def stub(packages: Sequence[str], *, missing_only: bool) -> None:
    """Let ``import`` find stand-ins for packages; with ``missing_only`` for those that are not installed.

    Raises:
        RuntimeError: A package has been imported before.
    """
    wanted = [name for name in packages if not (missing_only and importlib.util.find_spec(name))]
    for name in wanted:
        if name in sys.modules and not isinstance(sys.modules[name], _Stub):
            raise RuntimeError(f"{name} has been imported before it was stubbed: call stub_imports first")
    _FINDER.packages.update(wanted)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
