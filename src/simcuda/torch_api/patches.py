"""Replace names of torch for the simulation, and restore them.

Other modules may have bound them by name, as in ``from torch import tensor``: they are replaced too.

Known limitations:
    Names in classes and functions, as for the default of an argument, stay bound to what they were.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

_MISSING = object()
_OURS = ("torch", "simcuda")
# Most modules have none of these names, by their number of names when that was found out.
_without_any: dict[str, tuple[int, int]] = {}


@dataclass(eq=False)
class Patches:
    """Attributes set on modules and classes, each to be put back as it was.

    Attributes:
        replaced: Every owner and name that is replaced, with what the name stood for before.
    """

    replaced: list[tuple[Any, str, Any]] = field(default_factory=list)
    _is_suspended: bool = False

    def set(self, owner: Any, **values: Any) -> None:
        """Give a module or class these attributes until ``restore``.

        Args:
            owner: The module or class.
            **values: The attributes by name; a name may be set again.
        """
        for name, value in values.items():
            # An inherited attribute is not the owner's: it comes back by deleting the one set here.
            self.replaced.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)

    def restore(self) -> None:
        """Put every attribute back, the last one first."""
        while self.replaced:
            _put(*self.replaced.pop())

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Put every attribute back for a while; within another ``suspended``, change nothing."""
        if self._is_suspended:
            yield
            return
        self._is_suspended = True
        # Later patches may have replaced a name again: what counts is what it stands for now.
        simulated = [(owner, name, vars(owner)[name]) for owner, name, _ in self.replaced]
        for owner, name, original in reversed(self.replaced):
            _put(owner, name, original)
        try:
            yield
        finally:
            for owner, name, value in simulated:
                _put(owner, name, value)
            self._is_suspended = False

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Bind every module's names to what replaces them, and afterwards to what was replaced."""
        pairs = [
            (original, vars(owner)[name])
            for owner, name, original in self.replaced
            # Numbers and the like are others' too.
            if isinstance(owner, ModuleType) and callable(original)
        ]
        _rebind({id(original): simulated for original, simulated in pairs})
        try:
            yield
        finally:
            # Of a name that was replaced twice, the first original is torch's.
            _rebind({id(simulated): original for original, simulated in reversed(pairs)})


def _put(owner: Any, name: str, value: Any) -> None:
    if value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _rebind(others: dict[int, Any]) -> None:
    """Bind every name of a module outside torch that has a value in ``others``, by id, to the other one."""
    found = []
    for key, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or key.partition(".")[0] in _OURS:
            continue
        names = vars(module)
        if _without_any.get(key) == (id(module), len(names)):
            continue
        bound = [(module, name, value) for name, value in list(names.items()) if id(value) in others]
        if not bound:
            _without_any[key] = (id(module), len(names))
        found += bound
    for module, name, value in found:
        setattr(module, name, others[id(value)])


def as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function, which binds to what it is looked up on, as a bound method or a partial would not."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return method
