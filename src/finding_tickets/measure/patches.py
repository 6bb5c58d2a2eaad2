"""Torch and the meter as they were found: what a run replaces would change what later runs do and count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from finding_tickets.measure.report import CannotMeasureError

MODULES = (torch, torch.cuda, torch.nn.functional, torch.nn.utils)
CLASSES = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.cuda.Stream, torch.cuda.Event)

OURS = ("simcuda", "finding_tickets")
"""Packages that count and compare."""

TORCH = str(Path(torch.__file__).parent)
FOLLOWS_A_SETTING = {"Storage"}
"""Names that torch itself binds again, here with the default dtype."""


@contextmanager
def unpatched(who: str = "") -> Iterator[None]:
    """Raise ``CannotMeasureError`` where what happens within replaces functions of torch or of the meter.

    All is put back first: replaced and deleted names, constants too, and what a class got on top of what it
    inherits. The message begins with ``who``.
    """
    before = [(owner, dict(vars(owner))) for owner in (*MODULES, *CLASSES, *_ours())]
    yield
    if patched := [name for owner, names in before for name in _restored(owner, names)]:
        raise CannotMeasureError(f"{who}replaces {', '.join(patched)}, which every other variant uses too")


def _ours() -> Iterator[Any]:
    """The modules of our own that are loaded, and the classes that they define."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS:
            yield module
            classes = (value for value in vars(module).values() if isinstance(value, type))
            yield from (each for each in classes if each.__module__ == name)


def _restored(owner: Any, before: dict[str, Any]) -> Iterator[str]:
    """The functions of a module or a class that are others now, by their full names, put back."""
    is_module = isinstance(owner, ModuleType)
    prefix = f"{owner.__name__}." if is_module else f"{owner.__module__}.{owner.__qualname__}."
    # A module may gain names by importing; what a class gains hides what it inherits.
    names = before.keys() if is_module else before.keys() | vars(owner).keys()
    for name in sorted(names - FOLLOWS_A_SETTING):
        old, new = before.get(name), vars(owner).get(name)
        matters = _is_code(old) or _is_code(new) or name.isupper()
        if old is not new and matters and not _is_of_torch(new):
            if name in before:
                setattr(owner, name, old)
            else:
                delattr(owner, name)
            yield prefix + name


def _is_code(value: Any) -> bool:
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def _is_of_torch(value: Any) -> bool:
    """Whether torch defines a function: its compiler, once loaded, wraps some of torch's own for good."""
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(TORCH)
