"""What measures is held to what it was: parts that measured code replaces are put back and named.

Each block of measured code is looked at as it ends. When a worker ends, ``state`` tells by content what is
left replaced: the server, which that code does not reach, compares it with its own state.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import attrgetter, is_
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

import torch

from finding_tickets.measure.tasks import CannotMeasureError

MODULES = (torch, torch.cuda, torch.nn.functional, torch.nn.utils)
CLASSES = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.cuda.Stream, torch.cuda.Event)
# The packages that count and compare.
OURS = ("simcuda", "finding_tickets")

# Names of torch that follow a setting, here the default dtype, or what is registered with it.
FOLLOWS_TORCH = {"Storage", "OPDEFS"}
# What a class has in the place of a function.
WRAPPERS = (property, classmethod, staticmethod)
# What a function does lies here.
PARTS = ("__code__", "__defaults__", "__kwdefaults__")
PLAIN = {str, int, float, bool, bytes, NoneType}
HOLDING = {
    property: ("fget", "fset", "fdel"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    partial: ("func", "args", "keywords"),
}
OPAQUE = {type, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MemberDescriptorType}
MOST_NAMES = 9
EMPTY, NOTHING_MORE = CellType(), [None] * 3
# What makes them of torch's own functions.
WRAPPING = (
    ("torch._compile", "_disable_dynamo"),
    ("torch._dynamo.mutation_guard", "install_generation_tagging_init"),
)


# By the number of owners: the functions of all, the owner and the name there of each, and their parts.
_functions: dict[int, tuple[list[FunctionType], list[tuple[Any, str]], list[list[Any]]]] = {}
# By the name of a module: how many names it has, and the classes that it defines.
_classes: dict[str, tuple[ModuleType, int, tuple[type, ...]]] = {}


@contextmanager
def unpatched(who: str = "") -> Iterator[None]:
    """Raise ``CannotMeasureError`` if the block replaces functions of torch or of the meter.

    Everything is put back first: replaced and deleted names, constants too, what was added to a class to hide
    what it inherits, and the code of functions. The message begins with ``who``.
    """
    before = [(owner, vars(owner).copy()) for owner in _owners()]
    if len(before) not in _functions:
        # Once for all blocks, until more is imported.
        functions, places = [], []
        for owner, names in before:
            for name, value in names.items():
                function = getattr(value, "__func__", value)
                if type(function) is FunctionType:
                    functions.append(function)
                    places.append((owner, name))
        _functions.clear()
        held = [[*map(attrgetter(part), functions)] for part in PARTS]
        _functions[len(before)] = functions, places, held
    functions, places, held = _functions[len(before)]
    try:
        yield
    finally:
        # Where the block raises, what it has replaced is the reason.
        patched = [name for owner, names in before for name in _restored(owner, names)]
        for part, olds in zip(PARTS, held, strict=True):
            # All at once: nearly always each is what it was.
            if all(map(is_, news := [*map(attrgetter(part), functions)], olds)):
                continue
            for function, (owner, name), old, new in zip(functions, places, olds, news, strict=True):
                if old is not new and (part == PARTS[0] or old != new):
                    setattr(function, part, old)
                    patched.append(f"{_full_name(owner)}.{name}")
        if patched:
            raise CannotMeasureError(who + replaces(dict.fromkeys(patched)))


def replaces(names: Collection[str]) -> str:
    """What is wrong with code that replaces these, of which a few are named."""
    few = [*names][:MOST_NAMES]
    more = f" and {len(names) - len(few)} more" if len(names) > len(few) else ""
    return f"replaces {', '.join(few)}{more}, which every other variant uses too"


def state() -> dict[str, int]:
    """What our functions, classes and constants hold, and those of torch that we guard, by full name.

    Equal numbers stand for equal contents, in this process and those forked from it: code, defaults,
    closures, attributes, and entries of tables. A class has a number for its names too, but for those of
    methods that could be added without an effect on others.
    """
    found = {}
    for owner in _owners():
        prefix, names = _full_name(owner), []
        for name, value in list(vars(owner).items()):
            if (_is_code(value) or name.isupper()) and name not in FOLLOWS_TORCH:
                found[f"{prefix}.{name}"] = hash(_content(value, ()))
                names.append(name)
        if isinstance(owner, type):
            found[prefix] = hash(frozenset(name for name in names if not _only_adds(owner, name)))
    return found


def fresh_state() -> dict[str, int]:
    """``state`` by code that is compiled anew from this file, whatever the one that is loaded became."""
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(Path(__file__).read_bytes(), __file__, "exec"), names)  # noqa: S102 - our own file
    found: dict[str, int] = names["state"]()
    return found


def changed_names(before: Mapping[str, int], after: Mapping[str, object]) -> list[str]:
    """The names that stand for something else than before, or for nothing."""
    return [
        name for name, number in before.items() if not isinstance(after, dict) or after.get(name) != number
    ]


def _content(value: Any, within: tuple[int, ...]) -> Hashable:
    """What a value holds, down to what cannot change, which is known by where it is."""
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    held: Any
    if kind in OPAQUE:
        return id(value)
    if kind is FunctionType:
        value = _unwrapped(value)
        code, *more = id(value.__code__), value.__defaults__, value.__kwdefaults__, value.__closure__
        if more == NOTHING_MORE:
            return kind, code
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != EMPTY]
        held = [code, *more[:2], *cells]
    elif kind in HOLDING:
        held = [getattr(value, name) for name in HOLDING[kind]]
    elif issubclass(kind, list | tuple):
        held = value
    elif issubclass(kind, dict | MappingProxyType):
        held = [*value, *value.values()]
    elif issubclass(kind, set | frozenset):
        return frozenset(_content(each, within) for each in value)
    elif kind.__module__.partition(".")[0] in OURS:
        slots = [name for each in kind.__mro__ for name in vars(each).get("__slots__", ())]
        held = [getattr(value, name, None) for name in (*getattr(value, "__dict__", ()), *slots)]
    else:
        return id(value)
    if id(value) in within:
        return within.index(id(value))
    within = (*within, id(value))
    return kind, *[_content(each, within) for each in held]


def _owners() -> list[Any]:
    """Our own loaded modules and the classes that they define, and those of torch."""
    owners: list[Any] = [*MODULES, *CLASSES]
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
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


def _is_code(value: Any) -> bool:
    return callable(value) or type(value) in WRAPPERS


def _only_adds(owner: type, name: str) -> bool:
    """Whether a name of a class of torch is a method that hides nothing, as libraries add for their own use.

    transformers adds ``torch.nn.Module.smart_apply``, for example.
    """
    inherited = any(name in vars(base) for base in owner.__mro__[1:])
    is_method = type(vars(owner)[name]) is FunctionType
    return owner in CLASSES and is_method and not inherited and not name.startswith("__")


def _restored(owner: Any, before: dict[str, Any]) -> Iterator[str]:
    """Put back what was replaced in a module or a class, and give the full names."""
    now = vars(owner)
    # Nearly always nothing was replaced. Entries are compared by identity: they might claim to be equal.
    same = map(is_, chain(now, now.values()), chain(before, before.values()))
    if len(now) == len(before) and all(same):
        return
    # A module may gain names by importing; a name added to a class hides one that it inherits.
    names = before.keys() if isinstance(owner, ModuleType) else before.keys() | now.keys()
    # Hardly any name changes, and there are many: the rest is asked of those alone.
    for name in sorted({name for name in names if before.get(name) is not now.get(name)} - FOLLOWS_TORCH):
        old, new = before.get(name), now.get(name)
        # Code and constants are held to what they were; other values change as a program runs.
        if not (_is_code(old) or _is_code(new) or name.isupper()) or _unwrapped(new) is _unwrapped(old):
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
