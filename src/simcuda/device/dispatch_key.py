"""Intercept every operation of torch without a dispatch mode.

While any dispatch mode is on, autograd takes formulas meant for tensor subclasses, so that the backward pass
issues other operations than on CUDA. A separate dispatch key avoids that. ``Fake`` is one that torch has
reserved and does not use; it comes after autograd and dispatch modes, and before the kernels. Torch keeps for
each thread whether the key takes part.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

_KEY: Any = torch._C._parse_dispatch_key("Fake")
_include: Any = torch._C._dispatch_tls_set_dispatch_key_included
_exclude: Any = torch._C._dispatch_tls_set_dispatch_key_excluded

_OF_AUTOGRAD: tuple[Any, ...] = (
    torch._C._parse_dispatch_key("AutogradFunctionality"),
    torch._C.DispatchKey.ADInplaceOrView,
)

VIEWS = (
    *("alias", "as_strided", "detach", "expand", "slice.Tensor", "squeeze.dim"),
    *("t", "transpose.int", "view", "_reshape_alias"),
)
"""The usual views, which may pass the key by: they are many, and charged nothing.

Some others, such as ``select``, are operations of their own on sparse tensors.
"""

EXPECTS_TENSOR = "Expected a value of type 'Tensor"

_watcher: Any = None

# The thread that sleeps now and then, and whether it is awake; None where every operation is watched.
_sleeper: int | None = None
_is_awake = True
# Other threads that have used a device meanwhile.
_users: set[int] = set()


@contextmanager
def watched_by(watcher: Any, *, views: bool) -> Iterator[None]:
    """Let ``watcher`` run the operations of this thread, and of those that are ``watched``.

    It has a method ``run``, which is given an operation, its positional and its named arguments. ``views``
    is whether it wants ``VIEWS`` too.
    """
    global _watcher, _sleeper  # noqa: PLW0603 - torch has one kernel for the key, for the whole process
    register()
    passing: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]  # not annotated
    with warnings.catch_warnings():
        # Torch warns once that the operators are others' too; to look for its text would take longer.
        warnings.simplefilter("ignore")
        for name in () if views else VIEWS:
            passing.impl(name, torch.library.fallthrough_kernel, "Fake")
    _watcher = watcher
    try:
        with watched():
            yield
    finally:
        # Threads that are still watched continue without a watcher.
        _watcher = _sleeper = None
        passing._destroy()


@contextmanager
def watched() -> Iterator[None]:
    """Watch the operations of this thread, also those that the watcher itself issues in this block."""
    # Both states are put back: blocks may be nested in either order.
    was_included = torch._C._dispatch_tls_is_dispatch_key_included(_KEY)
    was_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_KEY)
    _include(_KEY, True)
    _exclude(_KEY, False)
    try:
        yield
    finally:
        _include(_KEY, was_included)
        _exclude(_KEY, was_excluded)


def current_frames() -> dict[int, Any]:
    """Return what each thread is at; Python waits for ever if it collects garbage meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    frames = sys._current_frames()
    if collects:
        gc.enable()
    return frames


def sleep() -> None:
    """Let this thread's operations run at torch's own speed, unwatched, until it calls ``wake``.

    Nothing happens if another thread that is alive has used a device: it may share what is there.
    """
    global _sleeper, _is_awake
    _users.intersection_update(current_frames())
    if not _users:
        _sleeper, _is_awake = threading.get_ident(), False
        _include(_KEY, False)


def wake() -> None:
    """Watch this thread's operations again, if it sleeps: a device is about to be used."""
    global _is_awake  # noqa: PLW0603 - see sleep
    thread = threading.get_ident()
    if thread == _sleeper:
        _is_awake = True
        _include(_KEY, True)
    elif _sleeper is not None:
        _users.add(thread)


def stay_awake() -> None:
    """Watch this thread again after code of C++ that has put its state back, if it woke up within that."""
    if _is_awake:
        wake()


def is_watched() -> bool:
    """Return True if this thread's operations are watched now: not within one, or in some of C++'s code."""
    return not torch._C._dispatch_tls_is_dispatch_key_excluded(_KEY)


def unwatched(function: Callable[P, R]) -> Callable[P, R]:
    """Let torch run the operations of ``function`` itself, also where this thread is watched.

    For code of the simulation itself that looks at simulated tensors.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        was_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_KEY)
        _exclude(_KEY, True)
        try:
            return function(*args, **kwargs)
        finally:
            _exclude(_KEY, was_excluded)

    return run


@contextmanager
def recording_gradients() -> Iterator[None]:
    """Let autograd record what happens in this block, which may be within an operation."""
    before = [
        torch._C._dispatch_tls_is_dispatch_key_excluded(key) for key in _OF_AUTOGRAD
    ]
    for key in _OF_AUTOGRAD:
        _exclude(key, False)
    try:
        with torch.enable_grad():
            yield
    finally:
        for key, was_excluded in zip(_OF_AUTOGRAD, before, strict=True):
            _exclude(key, was_excluded)


@cache
def register() -> Any:
    """Let the operations of all that is ``watched`` arrive here."""
    # Never undone: watched threads may outlive the watcher, and nothing else uses the key.
    library: Any = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]  # not annotated
    library.fallback(_run, "Fake")
    # Operators of operators, such as that of flex_attention, know no fallback: they pass the key by, and the
    # operations that they are made of arrive.
    torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(_KEY)
    operator: Any
    for operator in torch._ops._higher_order_ops.values():
        operator.fallthrough(_KEY)
    return library


@unwatched
def _ask_watcher(operation: Any, args: Any, kwargs: Any) -> Any:
    # Nothing else may hold the arguments: the watcher looks at who does.
    return (
        operation._op(*args, **kwargs)
        if _watcher is None
        else _watcher.run(operation, args, kwargs)
    )


def _run(operation: Any, *args: Any, **kwargs: Any) -> Any:
    # What the watcher itself does on the way is not watched.
    _exclude(_KEY, True)
    try:
        if _watcher is None:
            return operation._op(*args, **kwargs)
        return _watcher.run(operation, args, kwargs)
    except RuntimeError as error:
        if EXPECTS_TENSOR not in str(error):
            raise
        return _ask_watcher(operation, _with_tensors(operation, args), kwargs)
    finally:
        _exclude(_KEY, False)


def _with_tensors(operation: Any, args: tuple[Any, ...]) -> list[Any]:
    """The arguments, with a tensor of the host for every number that stands for one.

    C++ hands Python the tensors that it makes of numbers, as a trace keeps its constants, as numbers again.
    Arithmetic takes these; other operations do not.
    """
    kinds = [str(argument.type) for argument in operation._schema.arguments]
    return [
        torch.tensor(each, dtype=torch.float64 if isinstance(each, float) else None)
        if "Tensor" in kind and isinstance(each, bool | int | float | complex)
        else each
        for kind, each in zip(kinds, args, strict=False)
    ]
