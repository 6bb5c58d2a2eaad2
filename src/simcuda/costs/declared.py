"""Let programs declare the cost of other libraries' operators on CUDA, which no rule knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch._library.custom_ops import OPDEFS

from simcuda.costs.call import OpCost, OperationCall
from simcuda.costs.rules import rules_for
from simcuda.costs.traits import traits_of

NAME = re.compile(r"(\w+)::(\w+)(\.\w+)?")
MARK = ", declared"
"""Follows the name of an operation where a measurement lists it."""

F = TypeVar("F", bound=Callable[[OperationCall], OpCost])

_declared: dict[str, Callable[[OperationCall], OpCost]] = {}


class WrongCostError(Exception):
    """A declared function for a cost has failed or returned nonsense; the message says how."""


def cost(operator: str) -> Callable[[F], F]:
    """Declare what an operator costs on CUDA, besides the memory of its results; a decorator.

    The function is called with each call of the operator, once it has run, and returns its cost. A
    measurement in which it ran lists the operator in ``approximate``. If the function fails, or returns
    something else, the cost is unknown.

    Args:
        operator: Its name, such as ``mylib::scan``, for all overloads; it may be defined later.

    Raises:
        ValueError: The cost is known by other means, or was declared before by another function.
    """
    found = NAME.fullmatch(operator) if isinstance(operator, str) else None
    if found is None:
        raise ValueError(f"{operator!r} is no name of an operator, such as mylib::scan")
    namespace, name, overload = found.groups("")
    if namespace in ("aten", "prim", "prims"):
        raise ValueError(f"{operator} is PyTorch's own: its cost is not to be declared")
    packet = f"{namespace}.{name}"
    if rules_for(packet + (overload or ".")):
        raise ValueError(
            f"{operator} has a rule already (docs/truth.md): its cost is not to be declared"
        )
    if torch._C._dispatch_has_kernel(f"{namespace}::{name}"):
        packet_of_torch = getattr(getattr(torch.ops, namespace), name)
        overloads = [
            getattr(packet_of_torch, each) for each in packet_of_torch.overloads()
        ]
        if any(map(python_kernel, overloads)) or all(
            traits_of(each).composite for each in overloads
        ):
            raise ValueError(
                f"{operator} is made of other operations, which are counted instead"
            )

    def declare(function: F) -> F:
        # A file that is loaded again declares the same again.
        before = _declared.setdefault(packet + overload, function)
        if _code(before) != _code(function):
            raise ValueError(
                f"{operator} is declared already, by {before.__module__}.{before.__qualname__}"
            )
        return function

    return declare


def declared_name(op: str) -> str:
    """Return how a measurement lists a declared operation, by its name with overload; else nothing."""
    for name in (op, op.rpartition(".")[0]):
        if name in _declared:
            return name + MARK
    return ""


def declared_cost(call: OperationCall) -> OpCost:
    """Return the declared cost of a call.

    Raises:
        WrongCostError: Its function fails, or returns nonsense.
    """
    try:
        found = _declared[declared_name(call.op).removesuffix(MARK)](call)
        _check(found)
    except Exception as error:
        raise WrongCostError(f"fails: {type(error).__name__}: {error}") from error
    return found


def _check(found: object) -> None:
    if not isinstance(found, OpCost):
        raise TypeError(f"{found!r} is no simcuda.OpCost")
    amounts = [
        found.launches,
        found.waits,
        *found.temporaries,
        *found.workspaces,
        *found.passing,
    ]
    for kind, nbytes in found.copies:
        if kind not in ("h2d", "d2h", "d2d"):
            raise ValueError(
                f"there is no copy of the kind {kind!r}, but h2d, d2h and d2d"
            )
        amounts.append(nbytes)
    for amount in amounts:
        if type(amount) is not int or amount < 0:
            raise ValueError(
                f"a cost is made of whole numbers from 0, not of {amount!r}"
            )


def declarations() -> frozenset[str]:
    """Return how a measurement lists each operation that is declared."""
    return frozenset(name + MARK for name in _declared)


def _code(function: Callable[..., Any]) -> Any:
    return getattr(function, "__code__", function)


def python_kernel(operator: Any, device: str = "cuda") -> Callable[..., Any] | None:
    """The Python code of an operator overload for a kind of device, or for every one."""
    name = operator.name()
    definition = OPDEFS.get(operator._schema.name)
    if definition is not None:
        kernels = definition._backend_fns
        kernel: Callable[..., Any] | None = kernels.get(device, kernels.get(None))
        return kernel
    # What was given to torch.library.impl is run by the dispatcher; kernels of C++ are not in its list.
    own, for_all = device.upper(), "CompositeExplicitAutograd"
    key = own if operator.has_kernel_for_dispatch_key(own) else for_all
    if f"{name.replace('::', '/')}/{key}" not in torch.library._impls:
        return None
    return partial(operator._op_dk, getattr(torch._C.DispatchKey, key))
