"""Guard the code that measures: put back and name what measured code replaces.

Each block of measured code is looked at as it ends.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter, is_
from types import FunctionType, ModuleType
from typing import Any

import torch

from finding_tickets.measure.tasks import CannotMeasureError

MODULES = (torch, torch.cuda, torch.nn.functional, torch.nn.utils)
CLASSES = (
    torch.Tensor,
    torch.nn.Module,
    torch.nn.Parameter,
    torch.cuda.Stream,
    torch.cuda.Event,
)
# The packages that count and compare.
OURS = ("simcuda", "finding_tickets")

# Names of torch that follow a setting, here the default dtype, or what is registered with it.
FOLLOWS_TORCH = {"Storage", "OPDEFS"}
# What a class has in the place of a function.
WRAPPERS = (property, classmethod, staticmethod)
# What a function does lies here.
PARTS = ("__code__", "__defaults__", "__kwdefaults__")
_get_parts = attrgetter(*PARTS)
MOST_NAMES = 9
# What makes them of torch's own functions.
WRAPPING = (
    ("torch._compile", "_disable_dynamo"),
    ("torch._dynamo.mutation_guard", "install_generation_tagging_init"),
)


# By who is guarded: the number of owners, the functions of all, what they refer to, and the name and parts of
# each.
_functions: dict[
    bool, tuple[int, list[FunctionType], list[Any], list[tuple[str, tuple[Any, ...]]]]
] = {}
# By the name of a module: how many names it has, and the classes that it defines.
_classes: dict[str, tuple[ModuleType, int, tuple[type, ...]]] = {}


@contextmanager
def unpatched(who: str = "", *, only_ours: bool = False) -> Iterator[None]:
    """Raise ``CannotMeasureError`` if the block replaces functions of torch or of the meter.

    Everything is put back first: replaced and deleted names, constants too, what was added to a class to hide
    what it inherits, and the code of functions. The message begins with ``who``. With ``only_ours`` torch is
    the block's own: what a program's libraries replace there, they would also replace on a GPU.
    """
    before = [(owner, vars(owner).copy()) for owner in _owners(only_ours=only_ours)]
    count, *_ = _functions.get(only_ours, (0,))
    if count != len(before):
        # Once for all blocks, until more is imported.
        functions, held = [], []
        for owner, names in before:
            for name, value in names.items():
                function = getattr(value, "__func__", value)
                if type(function) is FunctionType:
                    functions.append(function)
                    held.append((f"{_full_name(owner)}.{name}", _get_parts(function)))
        _functions[only_ours] = (
            len(before),
            functions,
            gc.get_referents(*functions),
            held,
        )
    _, functions, referents, held = _functions[only_ours]
    try:
        yield
    finally:
        # Where the block raises, what it has replaced is the reason.
        patched = [name for owner, names in before for name in _restored(owner, names)]
        # Nearly always each is what it was. To read a part takes longer: it is an event for audit hooks.
        now = gc.get_referents(*functions)
        if len(now) != len(referents) or not all(map(is_, now, referents)):
            for function, (name, olds) in zip(functions, held, strict=True):
                for part, old, new in zip(
                    PARTS, olds, _get_parts(function), strict=True
                ):
                    if old is not new and (part == PARTS[0] or old != new):
                        setattr(function, part, old)
                        patched.append(name)
            referents[:] = gc.get_referents(*functions)
        if patched:
            names = [*dict.fromkeys(patched)]
            more = (
                f" and {len(names) - MOST_NAMES} more"
                if len(names) > MOST_NAMES
                else ""
            )
            few = ", ".join(names[:MOST_NAMES])
            raise CannotMeasureError(
                f"{who}replaces {few}{more}, which every other variant uses too"
            )


def _owners(*, only_ours: bool) -> list[Any]:
    """Return our own loaded modules with the classes that they define, and torch with its."""
    owners: list[Any] = [] if only_ours else [*MODULES, *CLASSES]
    # Of thousands of modules few are ours; the server is the main program.
    ours = (*OURS, "__main__")
    for name in [name for name in list(sys.modules) if name.startswith(ours)]:
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None) if name == "__main__" else None
        if (spec.name if spec else name).partition(".")[0] in OURS:
            owners.append(module)
            # A module that gained no name has the classes that it had: each block of code asks for them.
            known, count, classes = _classes.get(name, (None, 0, ()))
            names = vars(module)
            if known is not module or count != len(names):
                kinds = (value for value in names.values() if isinstance(value, type))
                classes = tuple(each for each in kinds if each.__module__ == name)
                _classes[name] = module, len(names), classes
            owners += classes
    return owners


def _full_name(owner: Any) -> str:
    return (
        owner.__name__
        if isinstance(owner, ModuleType)
        else f"{owner.__module__}.{owner.__qualname__}"
    )


def _is_code(value: Any) -> bool:
    return callable(value) or type(value) in WRAPPERS


def _only_adds(owner: type, name: str) -> bool:
    """Return True for a method that was added to a class of torch and hides no inherited one.

    transformers adds ``torch.nn.Module.smart_apply``, for example.
    """
    inherited = any(name in vars(base) for base in owner.__mro__[1:])
    is_method = type(vars(owner)[name]) is FunctionType
    return (
        owner in CLASSES and is_method and not inherited and not name.startswith("__")
    )


def _restored(owner: Any, before: dict[str, Any]) -> Iterator[str]:
    """Put back what was replaced in a module or a class, and give the full names."""
    now = vars(owner)
    # Nearly always nothing was replaced. Entries are compared by identity: they might claim to be equal.
    same = map(is_, chain(now, now.values()), chain(before, before.values()))
    if len(now) == len(before) and all(same):
        return
    # A module may gain names by importing; a name added to a class hides one that it inherits.
    names = (
        before.keys() if isinstance(owner, ModuleType) else before.keys() | now.keys()
    )
    # Hardly any name changes, and there are many: the rest is asked of those alone.
    for name in sorted(
        {name for name in names if before.get(name) is not now.get(name)}
        - FOLLOWS_TORCH
    ):
        old, new = before.get(name), now.get(name)
        # Code and constants are held to what they were; other values change as a program runs.
        if not (_is_code(old) or _is_code(new) or name.isupper()) or _unwrapped(
            new
        ) is _unwrapped(old):
            continue
        if name not in before and _only_adds(owner, name):
            continue
        if name in before:
            setattr(owner, name, old)
        else:
            delattr(owner, name)
        yield f"{_full_name(owner)}.{name}"


def _unwrapped(value: Any) -> Any:
    """A function of torch without what torch's compiler, once loaded, wraps it in for good; anything else."""
    code = getattr(value, "__code__", None)
    if code is None:
        return value
    if not value.__closure__:
        return value
    # Its code is then one of theirs.
    for module, name in WRAPPING:
        maker = getattr(sys.modules.get(module), name, None)
        if maker is not None and any(code is each for each in maker.__code__.co_consts):
            held = (cell.cell_contents for cell in value.__closure__)
            return next(each for each in held if isinstance(each, FunctionType))
    return value
