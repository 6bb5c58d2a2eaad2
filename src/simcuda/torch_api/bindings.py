"""Functions and classes of torch that other modules import by name, as in ``from torch import tensor``.

Known limitations:
    Names in classes and functions, as for the default of an argument, stay bound to what they were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from simcuda.torch_api.patches import Patches

_OURS = ("torch", "simcuda")
# Most modules have none of these names, by their number of names when that was found out.
_without_any: dict[str, tuple[int, int]] = {}


@contextmanager
def followed(patches: Patches) -> Iterator[None]:
    """Bind every module's names to what replaces them, and to what was replaced where they outlive that."""
    pairs = [
        (original, vars(owner)[name])
        for owner, name, original in patches.replaced()
        # Numbers and the like are others' too.
        if isinstance(owner, ModuleType) and callable(original)
    ]
    _rebind({id(original): simulated for original, simulated in pairs})
    try:
        yield
    finally:
        # Of a name that was replaced twice, the first original is torch's.
        _rebind({id(simulated): original for original, simulated in reversed(pairs)})


def _rebind(others: dict[int, Any]) -> None:
    found = [
        (module, name, value)
        for key, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and _without_any.get(key) != (id(module), len(vars(module)))
        for name, value in _bound_in(key, module, others)
    ]
    for module, name, value in found:
        setattr(module, name, others[id(value)])


def _bound_in(key: str, module: ModuleType, others: dict[int, Any]) -> list[tuple[str, Any]]:
    names = {} if key.partition(".")[0] in _OURS else vars(module)
    found = [(name, value) for name, value in list(names.items()) if id(value) in others]
    if not found:
        _without_any[key] = (id(module), len(vars(module)))
    return found
