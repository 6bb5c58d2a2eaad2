"""Reductions to fewer elements."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from simcuda.basis import operations
from simcuda.costs.call import FREE, OpCost, OperationCall
from simcuda.costs.copies import contiguous
from simcuda.costs.launches import elementwise, kernels_over
from simcuda.costs.reductions import Arithmetic, reduction
from simcuda.costs.rules.rule import HALVES, CostRule
from simcuda.profile import Profile

FAMILY_OF = {
    f"aten.{name}": family
    for family, names in operations("reductions").items()
    for name in names
}
# Overloads with one name but of different families.
WHOLE = ("aten.max.default", "aten.min.default")
ALONG = ("aten.max.dim", "aten.min.dim")
CONVERTED = ("sum", "norm")


def reduce(
    family: str,
    tensor: Tensor,
    dimensions: tuple[int, ...],
    result: Tensor,
    profile: Profile,
) -> OpCost:
    """The cost of reducing dimensions, from 0 on, by one kernel of a family that ``Arithmetic`` knows.

    Of the tensor only its layout counts; the result may have another type.
    """
    if not tensor.numel():
        return OpCost(kernels_over(result))
    return _cost(
        family,
        tensor.shape,
        tensor.stride(),
        dimensions,
        tensor.dtype,
        result.dtype,
        profile,
    )


@lru_cache(maxsize=4096)
def _cost(
    family: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dimensions: tuple[int, ...],
    dtype: torch.dtype,
    result_dtype: torch.dtype,
    profile: Profile,
) -> OpCost:
    # Half precision is added up in single precision as it is read; other types are converted before.
    is_read_as_it_is = (
        dtype.is_complex or dtype == result_dtype or family not in CONVERTED
    )
    is_widened_in_passing = dtype in HALVES and result_dtype == torch.float32
    is_converted = not is_read_as_it_is and not is_widened_in_passing
    read = result_dtype if is_converted else dtype
    how = Arithmetic(family, read.itemsize, read in HALVES)
    work = reduction(
        tuple(shape), strides, dimensions, how, profile, result_dtype.itemsize
    )
    if not is_converted:
        return work
    elements = prod(shape)
    return (
        OpCost(
            elementwise(elements, read.itemsize), workspaces=(elements * read.itemsize,)
        )
        + work
    )


@CostRule(
    id="reduce",
    ops=(*FAMILY_OF, *WHOLE, *ALONG),
    source="ATen/native/cuda/Reduce.cuh: one kernel; a workspace where blocks share a result. "
    "ReduceOps.cpp: sums and norms convert their input first where the result has another type, "
    "except half to single; any and all copy a single value; argmax and argmin of all flatten, "
    "max and min of all need contiguous memory",
    example="x.sum()",
)
def _reduce(call: OperationCall) -> OpCost:
    tensor, result = call.first, call.result
    if call.op in WHOLE:
        family = "extremum"
    else:
        family = (
            "argument" if call.op in ALONG else FAMILY_OF[call.op.rpartition(".")[0]]
        )
    if family == "logical" and tensor.numel() == 1:
        # A single value is copied, as a truth value.
        if tensor.dtype == torch.bool:
            return OpCost(copies=(("d2d", tensor.nbytes),))
        return OpCost(launches=1, copies=(("d2d", 1),), workspaces=(1,))
    if call.op in ALONG and not tensor.dim():
        # TensorCompare.cpp: values are filled with the only one, by a copy, and positions with 0.
        return OpCost(launches=1, copies=(("d2d", tensor.nbytes),))
    dimensions, copied = _dimensions(call, tensor), FREE
    if call.op in WHOLE:
        copied = contiguous(tensor)
    elif family == "argument" and call.argument("dim") is None:
        # The position is one in a row, which is a view where strides allow it.
        row = tensor.reshape(-1)
        copied = FREE if row.data_ptr() == tensor.data_ptr() else contiguous(tensor)
        tensor, dimensions = row, (0,)
    return copied + reduce(family, tensor, dimensions, result, call.profile)


@CostRule(
    id="renorm",
    ops=("aten.renorm", "aten.renorm_"),
    source="ATen/native/Normalization.cpp: norms, of halves in single precision; a factor of each, a product",
    example="x.view(2, 4).renorm(2, 0, 1)",
)
def _renorm(call: OperationCall) -> OpCost:
    """Charge norms of all parts along a dimension, a factor of each, and one product.

    Factors of halves and of complex numbers have memory of their own, because norms have another type.
    The formula of the gradient asks for the device, and is one of the host here.
    """
    tensor = call.first
    dim = call.argument("dim") % tensor.dim()
    dtype = torch.float32 if tensor.dtype in HALVES else tensor.dtype.to_real()
    norms = torch.empty(tensor.shape[dim], dtype=dtype, device="meta")
    factors = norms.numel() * tensor.element_size() if dtype != tensor.dtype else 0
    work = reduce(
        "norm",
        tensor,
        (*range(dim), *range(dim + 1, tensor.dim())),
        norms,
        call.profile,
    )
    return OpCost(1 + kernels_over(tensor), temporaries=(norms.nbytes, factors)) + work


def _dimensions(call: OperationCall, tensor: Tensor) -> tuple[int, ...]:
    dim = call.argument("dim")
    # No dimension means all of them.
    if dim is None or dim == []:
        return tuple(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(d % tensor.dim() for d in dims) if tensor.dim() else ()
