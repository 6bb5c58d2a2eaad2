"""What programs declare about operators of other libraries: their cost on CUDA, which no rule knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS

from simcuda.cost.call import OpCost
from simcuda.cost.rules import rules_for
from simcuda.cost.traits import traits_of

NAME = re.compile(r"(\w+)::(\w+)(\.\w+)?")
MARK = ", declared: "
"""Between the name of an operation and its cost, where a measurement lists it."""

_declared: dict[str, OpCost] = {}


def declare(
    operator: str,
    *,
    launches: int = 1,
    waits: int = 0,
    h2d: Sequence[int] = (),
    d2h: Sequence[int] = (),
    d2d: Sequence[int] = (),
    temporaries: Sequence[int] = (),
) -> None:
    """Declare what a call of an operator costs on CUDA, besides the memory of its results.

    A measurement in which it ran lists it with this cost in ``approximate``.

    Args:
        operator: Its name, such as ``mylib::scan``, for all overloads; it may be defined later.
        launches: Kernels that it launches.
        waits: Times the host waits for the stream.
        h2d: Bytes of each copy to the device.
        d2h: Bytes of each copy to the host.
        d2d: Bytes of each copy within the device.
        temporaries: Bytes of each allocation that it frees before it returns.

    Raises:
        ValueError: The cost is known by other means, is not of whole numbers from 0, or differs from what was
            declared before.
    """
    found = NAME.fullmatch(operator) if isinstance(operator, str) else None
    if found is None:
        raise ValueError(f"{operator!r} is no name of an operator, such as mylib::scan")
    namespace, name, overload = found.groups("")
    if namespace in ("aten", "prim", "prims"):
        raise ValueError(f"{operator} is PyTorch's own: its cost is not to be declared")
    packet = f"{namespace}.{name}"
    if rules_for(packet + (overload or ".")):
        raise ValueError(f"{operator} has a rule already (docs/truth.md): its cost is not to be declared")
    if torch._C._dispatch_has_kernel(f"{namespace}::{name}"):
        packet_of_torch = getattr(getattr(torch.ops, namespace), name)
        overloads = [getattr(packet_of_torch, each) for each in packet_of_torch.overloads()]
        if any(map(python_kernel, overloads)) or all(traits_of(each).composite for each in overloads):
            raise ValueError(f"{operator} is made of other operations, which are counted instead")
    amounts = launches, waits, *h2d, *d2h, *d2d, *temporaries
    if wrong := [each for each in amounts if type(each) is not int or each < 0]:
        raise ValueError(f"{operator}: a cost is a whole number from 0, not {wrong[0]!r}")
    kinds = {"h2d": h2d, "d2h": d2h, "d2d": d2d}
    cost = OpCost(
        launches=launches,
        waits=waits,
        copies=tuple((kind, nbytes) for kind, sizes in kinds.items() for nbytes in sizes),
        temporaries=tuple(temporaries),
    )
    before = _declared.setdefault(packet + overload, cost)
    if before != cost:
        raise ValueError(f"{operator} is declared already, as {_text(before)}; this says {_text(cost)}")


def declared_cost(op: str) -> tuple[OpCost, str] | None:
    """The declared cost of an operation, by its name with overload, and how a measurement lists it."""
    packet = op.rpartition(".")[0]
    name = op if op in _declared else packet
    return (_declared[name], f"{name}{MARK}{_text(_declared[name])}") if name in _declared else None


def declarations() -> frozenset[str]:
    """How a measurement lists each operation that is declared."""
    return frozenset(f"{name}{MARK}{_text(cost)}" for name, cost in _declared.items())


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


def _text(cost: OpCost) -> str:
    blocks = [("temporary", nbytes) for nbytes in cost.temporaries]
    sizes = [f"{kind} {nbytes} B" for kind, nbytes in (*cost.copies, *blocks)]
    return ", ".join([f"launches {cost.launches}", f"waits {cost.waits}", *sizes])
