"""Run an operation for the shapes of its results alone: what it costs does not depend on their values.

Replaying recorded calls needs this: a processor takes minutes for what a GPU did in a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from simcuda.cost.call import all_tensors_in

SMALL = 4096
"""Elements of an operation's largest tensor, up to which it is computed."""

PRODUCTS = frozenset(
    f"aten.{name}"
    for name in (
        *("mm.default", "addmm.default", "bmm.default", "baddbmm.default", "convolution.default"),
        *("convolution_backward.default", "sum.dim_IntList", "mean.dim", "embedding.default"),
        *("_scaled_dot_product_flash_attention_for_cpu.default", "native_layer_norm_backward.default"),
        *("_to_copy.default", "clone.default"),
    )
)
"""Operations that are not computed, besides elementwise ones and those that make a tensor like another."""

IN_PLACE = frozenset({"aten.copy_.default", "aten.zero_.default", "aten.fill_.Scalar", "aten.fill_.Tensor"})
"""Operations in place that write to their first argument alone, besides elementwise ones."""

LARGE = 1 << 20
"""Elements above which a tensor need not be filled: its integers become 1 where an operation reads them."""

is_on: list[bool] = []
"""Not empty within ``shapes_only``: the dispatcher looks before every operation, and calls ``execute``."""


@contextmanager
def shapes_only() -> Iterator[None]:
    """Do not compute large results of elementwise operations, products and convolutions in this block."""
    is_on.append(True)
    try:
        yield
    finally:
        is_on.pop()


def execute(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operation of ``shapes_only`` on the host, without computing where shapes suffice.

    Args:
        func: The operator overload.
        args: Its positional arguments.
        kwargs: Its arguments by name.
    """
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
            if each.numel() > LARGE and not each.dtype.is_floating_point and not each.dtype.is_complex:
                memory = torch.ops.aten.empty.memory_format([0], dtype=each.dtype, device="cpu")
                torch.ops.aten.set_.source_Storage(memory, each.untyped_storage()).fill_(1)
        return func._op(*args, **kwargs)
    named = {key: "meta" if key == "device" else _without_data(each) for key, each in kwargs.items()}
    result = func._op(*map(_without_data, args), **named)
    return tuple(map(_empty, result)) if isinstance(result, tuple) else _empty(result)


def _without_data(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        # A number must stay one: it does not decide the type of a result.
        if not value.dim():
            return value
        how = {"dtype": value.dtype, "device": "meta"}
        return torch.ops.aten.empty_strided.default(value.shape, value.stride(), **how)
    if isinstance(value, list | tuple):
        return [_without_data(each) for each in value]
    return value


def _empty(result: Any) -> Any:
    if not isinstance(result, torch.Tensor):
        return result
    how = {"dtype": result.dtype, "device": "cpu"}
    return torch.ops.aten.empty_strided.default(result.shape, result.stride(), **how)
