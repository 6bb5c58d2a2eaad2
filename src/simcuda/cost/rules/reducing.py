"""Reductions to fewer elements."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

import torch

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.launches import elementwise
from simcuda.cost.reductions import arithmetic, reduction
from simcuda.cost.rules.registry import Rule
from simcuda.profile import Profile

FAMILIES = {
    "sum": ("sum", "nansum", "prod", "mean"),
    "norm": ("norm", "linalg_vector_norm"),
    "extremum": ("amax", "amin"),
    "logical": ("any", "all", "_is_any_true", "_is_all_true"),
    "argument": ("argmax", "argmin"),
    "moment": ("var", "std", "var_mean", "std_mean"),
    "aminmax": ("aminmax",),
}
FAMILY_OF = {f"aten.{name}": family for family, names in FAMILIES.items() for name in names}
WHOLE = ("aten.max.default", "aten.min.default")
ALONG = ("aten.max.dim", "aten.min.dim")
CONVERTED = ("sum", "norm")
HALVES = (torch.float16, torch.bfloat16)


def reduce(
    family: str, tensor: torch.Tensor, dimensions: tuple[int, ...], result: torch.Tensor, profile: Profile
) -> Cost:
    """The cost of reducing ``dimensions`` of ``tensor`` by one kernel of a family of ``reductions``."""
    if not tensor.numel():
        return Cost(launches=elementwise(result.numel(), result.element_size()))
    return _cost(family, tensor.shape, tensor.stride(), dimensions, tensor.dtype, result.dtype, profile)


@lru_cache(maxsize=4096)
def _cost(
    family: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dimensions: tuple[int, ...],
    dtype: torch.dtype,
    result_dtype: torch.dtype,
    profile: Profile,
) -> Cost:
    elements = prod(shape)
    converted = family in CONVERTED and _is_converted(dtype, result_dtype)
    read = result_dtype if converted else dtype
    how = arithmetic(family, read.itemsize, half=read in HALVES)
    work = reduction(tuple(shape), strides, dimensions, how, profile, result_dtype.itemsize)
    kernels = work.launches
    workspaces = [*([work.accumulator_bytes] if work.accumulator_bytes else []), *work.workspaces]
    if converted:
        kernels += elementwise(elements, read.itemsize)
        workspaces.insert(0, elements * read.itemsize)
    return Cost(launches=kernels, workspaces=tuple(workspaces))


def _is_converted(dtype: torch.dtype, result: torch.dtype) -> bool:
    if dtype.is_complex or dtype == result:
        return False
    return not (dtype in HALVES and result == torch.float32)


def _family(op: str) -> str:
    if op in WHOLE:
        return "extremum"
    return "argument" if op in ALONG else FAMILY_OF[op.rpartition(".")[0]]


def _reduce(call: Call) -> Cost:
    tensor, result = call.args[0], call.outputs[0]
    family = _family(call.op)
    if family == "logical" and tensor.numel() == 1:
        return _one_value(tensor)
    return reduce(family, tensor, _dimensions(call, tensor), result, call.profile)


def _one_value(tensor: torch.Tensor) -> Cost:
    if tensor.dtype == torch.bool:
        return Cost(copies=(("d2d", nbytes(tensor)),))
    return Cost(launches=1, copies=(("d2d", 1),), workspaces=(1,))


def _count_nonzero(call: Call) -> Cost:
    """Truth values, which are widened to be added up."""
    tensor, result = call.args[0], call.outputs[0]
    truths = torch.empty_like(tensor, dtype=torch.bool, device="meta")
    total = reduce("sum", truths, _dimensions(call, tensor), result, call.profile)
    compared = elementwise(tensor.numel(), tensor.element_size())
    return replace(total, launches=compared + total.launches, temporaries=(truths.numel(),))


def _logsumexp(call: Call) -> Cost:
    """The maxima, of which infinite ones become 0; the exponentials of what exceeds them, and their sum."""
    tensor, result = call.args[0], call.outputs[0]
    dimensions = _dimensions(call, tensor)
    if not tensor.numel():
        return Cost(launches=2 * elementwise(result.numel(), result.element_size()))
    maxima = reduce("extremum", tensor, dimensions, result, call.profile)
    total = reduce("sum", tensor, dimensions, result, call.profile)
    of_result = elementwise(result.numel(), result.element_size())
    of_tensor = elementwise(tensor.numel(), tensor.element_size())
    return Cost(
        launches=maxima.launches + total.launches + 5 * of_result + 2 * of_tensor,
        passing=(nbytes(result), nbytes(result), result.numel()),
        temporaries=(nbytes(result), nbytes(tensor)),
        workspaces=total.workspaces,
    )


def _dimensions(call: Call, tensor: torch.Tensor) -> tuple[int, ...]:
    dim = call.argument("dim")
    if dim is None or dim == []:
        return tuple(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(d % tensor.dim() for d in dims) if tensor.dim() else ()


TOPIC = (
    Rule(
        id="reduce",
        ops=(*FAMILY_OF, *WHOLE, *ALONG),
        counts=_reduce,
        source="ATen/native/cuda/Reduce.cuh: one kernel; a workspace where blocks share a result. "
        "ReduceOps.cpp: sums and norms convert their input first where the result has another type, "
        "except half to single; any and all copy a single value",
        example="x.sum()",
    ),
    Rule(
        id="count-nonzero",
        ops=("aten.count_nonzero",),
        counts=_count_nonzero,
        source="ATen/native/TensorAdvancedIndexing.cpp: ne, then a sum of truth values",
        example="torch.count_nonzero(x)",
    ),
    Rule(
        id="logsumexp",
        ops=("aten.logsumexp",),
        counts=_logsumexp,
        source="ATen/native/ReduceOps.cpp: amax; abs, eq, masked_fill; sub, exp, sum; log, add",
        example="x.logsumexp(0)",
    ),
)
