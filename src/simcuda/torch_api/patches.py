"""Replace functions of torch for the simulation, and restore them.

A function of C++ is redirected itself, so that it does not matter where code has bound it, or when. Other
names are replaced, also where modules have bound them, as in ``from torch.cuda import Stream``.

Known limitations:
    Functions and classes of Python that a class or a function has bound stay what they were. They end in
    functions of C++. So may the names of a module that is put in the place of another one of its name.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import islice
from types import (
    BuiltinFunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, TypeVar, cast

from torch.jit import _builtins

_MISSING = object()
F = TypeVar("F")
Swap = tuple[partial[Any], Any]
_find_builtin: Callable[[Any], str | None] = _builtins._find_builtin
_NATIVE = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
# How CPython lays out its objects: the type is the last word of the head. ``CAN_REDIRECT`` checks it.
_WORD = ctypes.sizeof(ctypes.c_void_p)
_TYPE = object.__basicsize__ // _WORD - 1
_BY_ARGUMENTS_AND_NAMES = 3  # METH_VARARGS | METH_KEYWORDS


class _Definition(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_void_p),
    )


def _c_function(name: str, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)((name, ctypes.pythonapi))


_pointer, _object = ctypes.c_void_p, ctypes.py_object
_new_function = _c_function("PyCFunction_NewEx", _pointer, _pointer, _pointer)
_new_descriptor = _c_function("PyDescr_NewMethod", _object, _pointer)
_new_wrapper = _c_function("PyDescr_NewWrapper", _object, _pointer, _pointer)
_bound_when_got: Any = type(_c_function("PyInstanceMethod_New", _object)(len))
_call = ctypes.cast(ctypes.pythonapi.PyObject_Call, _pointer).value
# As ``id``, of which Python tells every audit hook, so that it takes many times longer where there is one.
_number = object.__hash__
# Of every function of C++ that was asked for: itself, its twin, and the definition that it has redirected,
# with its address.
_genuine: dict[int, tuple[Any, Any, _Definition, int]] = {}


_Words = ctypes.c_size_t * 6


def _words(native: Any) -> Any:
    """The words of a function of C++, from its type on: 6, as all of them have."""
    return _Words.from_address(id(native) + _TYPE * _WORD)


# A built-in function has its definition, what it is bound to and its module next, others have their class.
CAN_REDIRECT: bool = (
    sys.implementation.name == "cpython"
    and [*_words(sys.intern)][0::2] == [id(BuiltinFunctionType), id(sys), 0]
    and [*_words(str.upper)][:3]
    == [id(MethodDescriptorType), id(str), id(str.upper.__name__)]
)
"""Whether this Python lays out its objects in memory as we know it."""


def genuine(function: F) -> F:
    """Return the original of a function of C++, even while that is redirected; others as they are."""
    if not isinstance(function, _NATIVE) or not CAN_REDIRECT:
        return function
    if _number(function) not in _genuine:
        words = _words(function)
        definition = _Definition()
        if isinstance(function, BuiltinFunctionType):
            twin = _new_function(*(words[i] or None for i in (1, 2, 3)))
            own = _Definition.from_address(words[1])
            definition = _Definition(own.name, _call, _BY_ARGUMENTS_AND_NAMES, own.text)
        elif isinstance(function, MethodDescriptorType):
            twin = _new_descriptor(function.__objclass__, words[4])
        else:
            twin = _new_wrapper(function.__objclass__, words[4], words[5])
        _genuine[_number(function)] = (
            function,
            twin,
            definition,
            ctypes.addressof(definition),
        )
    return cast("F", _genuine[_number(function)][1])


def _redirected_to(target: Callable[..., Any], native: Any, words: Any) -> list[int]:
    """The words of a function of C++ that calls ``target`` instead."""
    if isinstance(native, BuiltinFunctionType):
        # It calls what it is bound to. The last word is for quick calls, which do not look at the definition.
        genuine(native)
        return [words[0], _genuine[_number(native)][3], id(target), *words[3:5], 0]
    return [id(_bound_when_got), id(target), *words[2:]]


def _swap_words(words: Any, now: list[int]) -> Any:
    before, words[:] = words[:], now
    return before


class _Made:
    def __new__(cls) -> _Made:
        return super().__new__(cls)


_PY_TP_NEW = 65  # typeslots.h
_slot_of: Any = ctypes.pythonapi.PyType_GetSlot
_slot_of.argtypes, _slot_of.restype = (_object, ctypes.c_int), ctypes.c_size_t


def _type_words(kind: type) -> Any:
    return (ctypes.c_size_t * (object.__sizeof__(_Made) // _WORD)).from_address(
        id(kind)
    )


_BY_NAME = _slot_of(_Made, _PY_TP_NEW)
_NEWS = [i for i, word in enumerate(_type_words(_Made)) if word == _BY_NAME]
CAN_REDIRECT = (
    CAN_REDIRECT
    and len(_NEWS) == 1
    and _type_words(int)[_NEWS[0]] == _slot_of(int, _PY_TP_NEW)
)


def native_new(kind: type) -> Callable[..., Any]:
    """Return the constructor of a type of C++, whatever ``Patches.set_new`` does."""
    call: Any = ctypes.PYFUNCTYPE(_object, _object, _object, _object)(
        _slot_of(kind, _PY_TP_NEW)
    )
    return lambda cls, *args, **kwargs: call(cls, args, kwargs)


def _swap_new(kind: type, now: tuple[int, Any]) -> tuple[int, Any]:
    """Change what makes objects, and what ``__new__`` is, also in the classes that inherit both."""
    names = gc.get_referents(vars(kind))[0]
    slot, before = _slot_of(kind, _PY_TP_NEW), names.pop("__new__", _MISSING)
    if now[1] is not _MISSING:
        names["__new__"] = now[1]
    inheriting: list[type] = [kind]
    for each in inheriting:
        if _type_words(each)[_NEWS[0]] == slot:
            _type_words(each)[_NEWS[0]] = now[0]
        subclasses: list[type] = type.__subclasses__(each)
        inheriting += [one for one in subclasses if "__new__" not in vars(one)]
    ctypes.pythonapi.PyType_Modified(_object(kind))
    return slot, before


def _swap_name(owner: Any, name: str, now: Any) -> Any:
    # An inherited attribute is not the owner's: it comes back by deleting the one that was set.
    before = vars(owner).get(name, _MISSING)
    if now is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, now)
    return before


def _swap_all(swaps: list[Swap]) -> list[Swap]:
    """Swap all, the last first; what swaps them back."""
    return [(swap, swap(value)) for swap, value in reversed(swaps)]


_OURS = ("torch", "simcuda")
_NEWEST = 100


@dataclass(slots=True)
class _Names:
    """The names of a module outside torch; most have none of what is looked for, with so many names."""

    names: dict[str, Any]
    without_any: int = -1
    without_tables: int = -1


# All modules that were there, and the names of those outside torch.
_modules: dict[str, ModuleType] = {}
_outside: dict[str, _Names] = {}
Table = dict[Any, Any] | set[Any]


@dataclass(eq=False)
class Patches:
    """The changes in modules, classes and functions of C++, each to be put back as it was.

    Attributes:
        tables: What has functions as keys, besides what modules outside torch have.
    """

    tables: list[Table] = field(default_factory=list)
    # What swaps one value for another, and what to swap it for, in the order of the changes.
    _swaps: list[Swap] = field(default_factory=list)
    _redirected: list[tuple[Any, Any]] = field(default_factory=list)
    _is_suspended: bool = False

    def set(self, owner: Any, **values: Any) -> None:
        """Give a module or class these attributes until ``restore``; a name may be set again."""
        for name, value in values.items():
            original = getattr(owner, name, None)
            # Other classes have the methods of ``object`` too. TorchScript knows a function by what it is.
            is_native = isinstance(original, _NATIVE) and (
                getattr(getattr(original, "__objclass__", None), "__module__", "")
                == "torch._C"
                or _find_builtin(original)
            )
            if CAN_REDIRECT and is_native and callable(value):
                self.redirect(original, value)
            else:
                self._change(partial(_swap_name, owner, name), value)

    def wrap(self, wrapper: Callable[..., Any], *names: tuple[Any, str]) -> None:
        """Let ``wrapper`` be called, with the original first, for each owner and name until ``restore``."""
        for owner, name in names:
            original = genuine(getattr(owner, name))
            self.set(
                owner, **{name: wraps(original)(as_method(partial(wrapper, original)))}
            )

    def redirect(self, native: Any, target: Callable[..., Any]) -> None:
        """Let a function of C++ call ``target`` until ``restore``, wherever it is bound.

        Meanwhile a function has another hash, and a class gives ``target`` where it is asked for a method:
        only ``tables``, and those of modules outside torch, find it.
        """
        if CAN_REDIRECT:
            ctypes.pythonapi.Py_IncRef(_object(target))
            self._redirected.append((native, target))
            words = _words(native)
            self._change(
                partial(_swap_words, words), _redirected_to(target, native, words[:])
            )
            return
        owner, name = (
            sys.modules.get(getattr(native, "__module__", "")),
            native.__name__,
        )
        if getattr(owner, name, None) is native:
            self.set(owner, **{name: target})

    def set_new(self, kind: type, new: Callable[..., Any]) -> None:
        """Let ``new`` make the objects of a type without a ``__new__`` of Python, until ``restore``."""
        if CAN_REDIRECT:
            self._change(partial(_swap_new, kind), (_BY_NAME, staticmethod(new)))

    def _change(self, swap: partial[Any], value: Any) -> None:
        self._swaps.append((swap, swap(value)))

    def restore(self) -> None:
        """Put everything back, the last first."""
        methods = {_number(target): native for native, target in self._methods()}
        tables = self._tables()
        _swap_all(self._swaps)
        self._swaps.clear()
        while self._redirected:
            ctypes.pythonapi.Py_DecRef(_object(self._redirected.pop()[1]))
        for table in tables:
            _rehash(table, methods)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Put everything back for a while; within another ``suspended``, change nothing."""
        if self._is_suspended:
            yield
            return
        self._is_suspended = True
        # What is changed meanwhile, as in a module that is loaded, stays.
        suspended, self._swaps = _swap_all(self._swaps), []
        try:
            yield
        finally:
            self._swaps += _swap_all(suspended)
            self._is_suspended = False

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Let every module's names stand for what replaces them, and its tables find it."""
        pairs = [
            (original, vars(swap.args[0])[swap.args[1]])
            for swap, original in self._swaps
            # Numbers and the like are others' too.
            if swap.func is _swap_name
            and isinstance(swap.args[0], ModuleType)
            and callable(original)
        ]
        _rebind({_number(original): simulated for original, simulated in pairs})
        targets = {_number(native): target for native, target in self._methods()}
        for table in self._tables():
            _rehash(table, targets)
        try:
            yield
        finally:
            # Of a name that was replaced twice, the first original is torch's.
            _rebind(
                {
                    _number(simulated): original
                    for original, simulated in reversed(pairs)
                }
            )

    def _methods(self) -> list[tuple[Any, Any]]:
        """The redirected methods, each with what its class gives in its place."""
        return [
            (native, target)
            for native, target in self._redirected
            if type(native) is _bound_when_got
        ]

    def _tables(self) -> list[Table]:
        functions = {
            _number(function)
            for redirected in self._redirected
            for function in redirected
        }
        return [*self.tables, *_tables_of(functions)]


def _tables_of(functions: set[int]) -> list[Table]:
    """The dictionaries and sets of modules outside torch that have one of these functions, by id, as a key.

    A class that takes part in ``__torch_function__`` looks up in such a table what it can do.
    """
    tables = []
    for each in _names_outside():
        names = each.names
        if each.without_tables == len(names):
            continue
        found = [
            value
            for value in list(names.values())
            if type(value) in (dict, set)
            and not functions.isdisjoint(map(_number, list(value)))
        ]
        if not found:
            each.without_tables = len(names)
        tables += found
    return tables


def _rehash(table: Table, others: dict[int, Any]) -> None:
    """Let each key be where its hash of now says, with ``others`` in place of those without one, by id.

    Not under both: a key that is found at its old place on the way to the new one is not entered again,
    and no longer found once the table grows.
    """
    if isinstance(table, dict):
        entries: list[Any] = [
            (others.get(_number(key), key), value) for key, value in table.items()
        ]
    else:
        entries = [others.get(_number(key), key) for key in table]
    table.clear()
    table.update(entries)


def _rebind(others: dict[int, Any]) -> None:
    """Bind every name of a module outside torch that has a value in ``others``, by id, to the other one."""
    for each in _names_outside():
        names = each.names
        if each.without_any == len(names):
            continue
        found = [
            name for name, value in list(names.items()) if _number(value) in others
        ]
        for name in found:
            names[name] = others[_number(names[name])]
        # Hardly any module has one.
        if not found:
            each.without_any = len(names)


def _names_outside() -> Iterable[_Names]:
    # A forked process copies each object that it looks at: of modules, as a rule, the newest alone.
    found = list(islice(reversed(sys.modules.items()), _NEWEST))
    if found[-1] not in _modules.items():
        found = list(sys.modules.items())
    for key, module in found:
        if _modules.get(key) is not module:
            _modules[key] = module
            if isinstance(module, ModuleType) and key.partition(".")[0] not in _OURS:
                _outside[key] = _Names(vars(module))
    return _outside.values()


def as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function, which binds to what it is looked up on, as a bound method or a partial would not."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return method
