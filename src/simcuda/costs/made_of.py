"""Operations that CUDA makes of others, where the host has a kernel of its own.

They run while the simulation watches, so that every operation within them is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from simcuda.basis import operations
from simcuda.costs.rules.kernels import TYPES_OF_NUMBERS

MOST_CANDIDATES = 10.0
GROWTH_OF_CANDIDATES = 0.145


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    # ATen asks for the same memory before it compares anything.
    is_same = one.data_ptr() == other.data_ptr() and one.stride() == other.stride()
    return is_same or not one.numel() or bool(one.eq(other).all().item())


def _count_nonzero(tensor: Tensor, dim: Any = ()) -> Tensor:
    return (tensor if tensor.dtype == torch.bool else tensor.ne(0)).sum(dim)


def _median(tensor: Tensor, *, ignores_nan: bool) -> Tensor:
    """Sort all elements; the result is in the middle, or NaN, which comes last."""
    if not tensor.numel():
        return tensor.new_full((), torch.nan)
    ordered = tensor.flatten().sort().values
    last = len(ordered) - 1
    if not ignores_nan:
        return torch.where(ordered[-1].isnan(), ordered[-1], ordered[last // 2])
    middle = torch.rsub(ordered.isnan().sum(), last).div(2)
    found: Tensor = torch.ops.aten.index.Tensor(ordered, [middle.long()])
    return found


def _masked_select(tensor: Tensor, mask: Tensor, **out: Tensor) -> Any:
    # Something without dimensions is selected from a row of one.
    shape = torch.broadcast_shapes(tensor.shape, mask.shape) or (1,)  # type: ignore[no-untyped-call]
    return torch.ops.aten.index(tensor.expand(shape), [mask.expand(shape)], **out)


def _nested_of_mask(padded: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """Find the lengths of rows, and bring them to the host with their widths."""
    ends = torch.cat([mask, mask.new_zeros(len(mask), 1)], 1).int().argmin(1)
    lengths = mask.cumsum(1)[:, -1]
    if mask_check and not lengths.equal(ends):
        raise RuntimeError("Expected mask to be left-aligned")
    rows = lengths[:, None]
    sizes = torch.cat([rows, torch.full_like(rows, padded.shape[-1])], 1)
    made: Tensor = torch._nested_from_padded(padded, sizes.cpu())
    return made


def _is_in(
    elements: Any, candidates: Tensor, *, out: Tensor | None = None, **how: bool
) -> Any:
    """Compare each element with few candidates; many are sorted with the elements, by ATen's shared code."""
    if not isinstance(elements, Tensor):
        dtype = TYPES_OF_NUMBERS[type(elements)]
        elements = torch.scalar_tensor(elements, dtype=dtype, device=candidates.device)
    if out is None:
        out = torch.empty(elements.shape, dtype=torch.bool, device=elements.device)
    if candidates.numel() >= int(
        MOST_CANDIDATES * elements.numel() ** GROWTH_OF_CANDIDATES
    ):
        sorting = torch.ops.aten.isin.Tensor_Tensor_out
        return sorting._op_dk(
            torch._C.DispatchKey.CPU, elements, candidates, **how, out=out
        )
    out.fill_(how.get("invert", False))
    if not candidates.numel():
        return out
    each = elements.unsqueeze(-1)
    if how.get("invert"):
        return out.copy_(each.ne(candidates.view(-1)).all(-1))
    return out.copy_(each.eq(candidates.view(-1)).any(-1))


def _moments(tensor: Tensor, *how: Any, of: str, **named: Any) -> Any:
    """Add up the variances of the real and the imaginary parts of complex numbers."""
    if not tensor.is_complex():
        return NotImplemented
    function = getattr(torch, of.replace("std", "var"))
    real, imaginary = (
        function(tensor.real, *how, **named),
        function(tensor.imag, *how, **named),
    )
    if not of.endswith("mean"):
        total = real + imaginary
        return total.sqrt_() if of == "std" else total
    total = real[0] + imaginary[0]
    return total.sqrt_() if of == "std_mean" else total, torch.complex(
        real[1], imaginary[1]
    )


MADE_OF: Mapping[str, Callable[..., Any]] = {
    **{
        f"aten.{name}.correction": partial(_moments, of=name)
        for name in operations("reductions")["moment"]
    },
    "aten.equal.default": _equal,
    "aten.count_nonzero.default": _count_nonzero,
    "aten.count_nonzero.dim_IntList": _count_nonzero,
    "aten.trace.default": lambda tensor: tensor.diagonal().sum(),
    "aten.median.default": partial(_median, ignores_nan=False),
    "aten.nanmedian.default": partial(_median, ignores_nan=True),
    "aten._nested_tensor_from_mask.default": _nested_of_mask,
    "aten.masked_select.default": _masked_select,
    "aten.masked_select.out": _masked_select,
    "aten.isin.Tensor_Tensor": _is_in,
    "aten.isin.Tensor_Tensor_out": _is_in,
    "aten.isin.Scalar_Tensor": _is_in,
    "aten.isin.Scalar_Tensor_out": _is_in,
    "aten.isin.Tensor_Scalar": lambda x, value, *, invert=False, **_: (
        x.ne(value) if invert else x.eq(value)
    ),
}
"""By operation, which has a kernel where the function answers ``NotImplemented``.

``operations.json`` names their sources; ATen/native/cuda/Sorting.cpp has medians, and ReduceOps.cpp moments
(std_var_out).
"""
