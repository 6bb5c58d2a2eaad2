"""Define the parts of a verifier: points of a sweep, the workload, stand-ins for missing packages.

It needs torch and the standard library alone, so that a verifier also runs on a bare GPU machine. Verifiers
import it as ``finding_tickets.workload``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch


class Point(Mapping[str, int]):
    """The sizes of one run: ``Point(params=4, largest=1024)``, read as ``point.params``.

    The names are the variables in which laws are expressed. Values are integers; a yes or no is 1 or 0.
    """

    __slots__ = ("_variables",)

    def __init__(self, **variables: int) -> None:
        self._variables = {name: int(value) for name, value in variables.items()}

    def __getattr__(self, name: str) -> int:
        try:
            return self._variables[name]
        except KeyError:
            raise AttributeError(
                f"this point has no variable {name!r}; it has {', '.join(self)}"
            ) from None

    def __getitem__(self, name: str) -> int:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __hash__(self) -> int:
        return hash(tuple(self._variables.items()))

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{name}={value}' for name, value in self.items())})"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The work for every variant of a ticket; what should result is no part of it.

    Attributes:
        ticket: The ticket's ID.
        build: ``build(point, device, generator)`` returns the arguments of one run as a tuple: fresh tensors,
            with new values from ``generator`` each time. ``device`` is ``"cuda"``, or ``"cpu"`` where
            torch.compile looks at the code; further devices are ``f"{device}:1"`` and so on.
        sweep: The points at which every variant runs; counts and sizes should vary independently.
        read: What the caller does with the result of a variant, inside the measured region.
        same: ``same(expected, actual)`` returns None where two results agree, else the difference in words.
            By default tensors are compared exactly, within containers and dataclasses too. What they get
            is plain: of a dataclass an object with its fields, and of a subclass what it holds.
        devices: How many devices a point needs; a meter that has fewer lists the point as not measured.
        memory: How many bytes of memory the device has at a point; None for all of it. With less, a run
            can end in an out-of-memory error, which the metric ``ooms`` counts.
        seed: Seed of the generators that ``build`` receives.
    """

    ticket: str
    build: Callable[[Point, str, torch.Generator], tuple[Any, ...]]
    sweep: Sequence[Point]
    read: Callable[[Any], Any] = lambda result: result
    same: Callable[[Any, Any], str | None] | None = None
    devices: Callable[[Point], int] = lambda _: 1
    memory: Callable[[Point], int | None] = lambda _: None
    seed: int = 0


class StandIn:
    """Has every attribute; can be called, entered, iterated over and derived from; does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take whatever it is given."""

    def __getattr__(self, name: str) -> Any:
        # Python itself and libraries look for these, a version for example, and can do without.
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A stand-in again, or the function to decorate."""
        return (
            args[0]
            if len(args) == 1 and not kwargs and callable(args[0])
            else StandIn()
        )

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """The real base of a class that derives from this; each is a new one, since bases must differ."""
        return (type("StandIn", (StandIn,), {}),)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, StandIn)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, StandIn)

    def __or__(self, other: object) -> Any:
        """An annotation such as ``Run | None``."""
        return self

    __ror__ = __or__

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class StandInModule(ModuleType):
    """A module in which every name is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, StandIn())
        return getattr(self, name)


class StandInFinder(MetaPathFinder, Loader):
    """Finds the stubbed packages and everything in them."""

    packages: ClassVar[set[str]] = set()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """A stub for a package of ours, or for what is in one."""
        del path, target
        return (
            ModuleSpec(name, self, is_package=True)
            if name.partition(".")[0] in self.packages
            else None
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty stub."""
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stub has no code."""


FINDER = StandInFinder()


def stub_imports(*packages: str, missing_only: bool = True) -> None:
    """Let the code under test import packages that are not there, before the verifier imports that code.

    A stand-in accepts everything and does nothing: loggers, trackers, viewers. What is counted must not
    depend on it. ``missing_only=False`` replaces installed packages too, because they are heavy.

    Raises:
        RuntimeError: A package that is to be replaced has been imported before.
    """
    wanted = [
        name
        for name in packages
        if not (missing_only and importlib.util.find_spec(name))
    ]
    for name in wanted:
        if name in sys.modules and not isinstance(sys.modules[name], StandInModule):
            raise RuntimeError(
                f"{name} has been imported before it was stubbed: call stub_imports first"
            )
    FINDER.packages.update(wanted)
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
