"""Make a recorded call again, alone and once, on the simulated device, and count what it costs.

Tensors are fresh: floating ones drawn uniformly from 0 to 1, masks from both values, integers from 1 to below
the smallest size of any tensor of the call (all are then valid indices, and none divides by 0), with a fixed
seed. Nothing requires a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from simcuda.basis import in_aten, operations
from simcuda.costs.call import all_tensors_in
from simcuda.ledger import allocation_listeners, listening, operations_of
from simcuda.measurement import Gpu
from simcuda.torch_api.dispatch import executing
from simcuda.traces.arguments import (
    DEVICE,
    HOST,
    NUMBER,
    PINNED,
    CallToMake,
    NotReplayableError,
    TensorToMake,
)
from simcuda.traces.call import KINDS, by_metric

MOST_BYTES = 4 << 30
"""Bytes of all arguments of one call that are made."""

SMALL = 4096
"""Elements of an operation's largest tensor, up to which it is computed."""

PRODUCTS = in_aten(operations("not computed"))
"""Operations that are not computed, besides elementwise ones and those that make a tensor like another."""

IN_PLACE = frozenset(
    {
        "aten.copy_.default",
        "aten.zero_.default",
        "aten.fill_.Scalar",
        "aten.fill_.Tensor",
    }
)
"""Operations in place that write to their first argument alone, besides elementwise ones."""

LARGE = 1 << 20
"""Elements above which a tensor need not be filled: its integers become 1 where an operation reads them."""


@dataclass(frozen=True)
class ReplayedCost:
    """The counts of the simulation.

    Attributes:
        values: The same as of a ``RecordedCost``, by metric; of allocations the bytes that were asked for.
        marks: Operations whose launches and memory the simulation calls approximate, or whose waits unknown.
        operations: How much each operation of the simulation made of what its ledger counts, by its name.
    """

    values: dict[str, Any]
    marks: tuple[str, ...]
    operations: Mapping[str, Mapping[str, int]]


def warm_up() -> None:
    """Let the libraries of the simulated device make what they keep, as before any recording."""
    square = torch.ones(8, 8, device="cuda")
    torch.mm(square, square)


def replay(gpu: Gpu, op: str, call: CallToMake) -> ReplayedCost:
    """Make a call.

    Args:
        gpu: The active simulation.
        op: Name without overload, such as ``aten::add``.
        call: Its overload and arguments.

    Raises:
        NotReplayableError: It is too large for this machine, or failed; the message says how.
    """
    schema = getattr(
        getattr(torch.ops.aten, op.removeprefix("aten::")), call.overload
    )._schema.arguments
    to_make = [
        each for each in tree_leaves(call.values) if isinstance(each, TensorToMake)
    ]
    if sum(_elements(each) * each.dtype.itemsize for each in to_make) > MOST_BYTES:
        raise NotReplayableError(f"its tensors take more than {MOST_BYTES >> 30} GiB")
    sizes = [size for each in to_make for size in each.shape]
    below, place = min(sizes, default=1), HOST if op == "aten::pin_memory" else ""
    # ``torch.manual_seed`` seeds other accelerators, too, and takes longer than the call.
    torch.default_generator.manual_seed(0)
    torch.cuda.manual_seed(0)
    positional, named = list[Any](), dict[str, Any]()
    for argument, value in zip(schema, call.values, strict=False):
        made = tree_map_only(
            TensorToMake, lambda tensor: _made(tensor, below, place), value
        )
        if argument.kwarg_only:
            named[argument.name] = made
        else:
            positional.append(made)
    requested: list[int] = []
    try:
        with (
            torch.no_grad(),
            shapes_only(),
            gpu.measure() as cost,
            listening(allocation_listeners, lambda size, _: requested.append(size)),
        ):
            _function(op, call.overload, schema)(*positional, **named)
    # Values that were not recorded are often impossible, and torch says so in one of these ways.
    except (RuntimeError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise NotReplayableError(
            f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
        ) from error
    copies = {
        kind: (getattr(cost, kind), getattr(cost, f"{kind}_bytes")) for kind in KINDS
    }
    waits = cost.stream_syncs, cost.event_syncs, cost.device_syncs
    counts = by_metric(cost.launches, copies, waits, requested)
    return ReplayedCost(counts, (*cost.approximate, *cost.unknown), operations_of(cost))


def _function(op: str, overload: str, schema: Sequence[Any]) -> Callable[..., Any]:
    """Return the callable: the function of Python if the simulation acts there, else the op itself."""
    name = op.removeprefix("aten::")
    names = [argument.name for argument in schema if not argument.kwarg_only]
    if name == "to" and "device" in [argument.name for argument in schema]:
        kept = {"device", "dtype", "non_blocking", "copy", "memory_format"}
        return lambda tensor, *args, **how: tensor.to(
            **{
                each: value
                for each, value in (
                    dict(zip(names[1:], args, strict=False)) | how
                ).items()
                if each in kept and value is not None
            }
        )
    of_python: dict[str, Callable[..., Any]] = {
        "dropout": torch.dropout,
        "one_hot": torch.nn.functional.one_hot,
        "scaled_dot_product_attention": torch.nn.functional.scaled_dot_product_attention,
        "pin_memory": lambda tensor, *_: tensor.pin_memory(),
        "record_stream": lambda tensor, _: tensor.record_stream(
            torch.cuda.current_stream()
        ),
    }
    return of_python.get(name) or getattr(getattr(torch.ops.aten, name), overload)


def _elements(tensor: TensorToMake) -> int:
    if 0 in tensor.shape:
        return 0
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    return 1 + sum((size - 1) * stride for size, stride in pairs)


def _made(tensor: TensorToMake, below: int, place: str) -> Any:
    place = tensor.place if tensor.place == NUMBER else place or tensor.place
    if place == NUMBER:
        return {torch.bool: True, torch.int64: 1}.get(tensor.dtype, 0.5)
    device = "cuda" if place == DEVICE else "cpu"
    dtype = tensor.dtype
    is_dense = torch.empty(tensor.shape, device="meta").stride() == tensor.strides
    # A tensor that is no view, where that is possible: some operations refuse views.
    shape = tensor.shape if is_dense else (_elements(tensor),)
    least = int(below > 1)
    if math.prod(shape) > LARGE:
        # Pinned later, it would be copied.
        drawn = torch.empty(
            shape, dtype=dtype, device=device, pin_memory=place == PINNED
        )
    elif dtype.is_floating_point or dtype.is_complex:
        # Narrow types have no generator of their own.
        drawn = torch.rand(shape, dtype=torch.float, device=device).to(dtype)
    else:
        # Masks have both values.
        most = 2 if dtype == torch.bool else max(least + 1, min(below, 100))
        drawn = torch.randint(
            0 if dtype == torch.bool else least, most, shape, device=device
        ).to(dtype)
    drawn = drawn.pin_memory() if place == PINNED and not drawn.is_pinned() else drawn
    return drawn if is_dense else drawn.as_strided(tensor.shape, tensor.strides)


def shapes_only() -> AbstractContextManager[None]:
    """Do not compute large results of elementwise operations, products and convolutions in this block.

    What they cost does not depend on their values, and a processor takes minutes for what a GPU did in a
    millisecond.
    """
    return listening(executing, _execute)


def _execute(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operation on the host, without computing where shapes suffice."""
    tensors = all_tensors_in(args, kwargs)
    is_elementwise = torch.Tag.pointwise in getattr(func, "tags", ())
    name = str(func)
    packet = name.rpartition(".")[0]
    if max((each.numel() for each in tensors), default=0) <= SMALL:
        return func._op(*args, **kwargs)
    if packet.endswith("_") and (is_elementwise or name in IN_PLACE):
        return args[0]
    if not (is_elementwise or name in PRODUCTS or packet.endswith("_like")):
        # Large integers become ones before they are read: as indices they are valid, as divisors not 0.
        for each in tensors:
            if (
                each.numel() > LARGE
                and not each.dtype.is_floating_point
                and not each.dtype.is_complex
            ):
                memory = torch.ops.aten.empty.memory_format(
                    [0], dtype=each.dtype, device="cpu"
                )
                torch.ops.aten.set_.source_Storage(
                    memory, each.untyped_storage()
                ).fill_(1)
        return func._op(*args, **kwargs)
    named = {
        key: "meta" if key == "device" else _without_data(each)
        for key, each in kwargs.items()
    }
    result = func._op(*map(_without_data, args), **named)
    return tuple(map(_empty, result)) if isinstance(result, tuple) else _empty(result)


def _without_data(value: Any) -> Any:
    if isinstance(value, Tensor):
        # A number must stay one: it does not decide the type of a result.
        if not value.dim():
            return value
        how = {"dtype": value.dtype, "device": "meta"}
        return torch.ops.aten.empty_strided.default(value.shape, value.stride(), **how)
    if isinstance(value, list | tuple):
        return [_without_data(each) for each in value]
    return value


def _empty(result: Any) -> Any:
    if not isinstance(result, Tensor):
        return result
    how = {"dtype": result.dtype, "device": "cpu"}
    return torch.ops.aten.empty_strided.default(result.shape, result.stride(), **how)
