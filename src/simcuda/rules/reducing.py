"""Reductions to fewer elements."""

from __future__ import annotations

import torch

from simcuda.call import Call, Cost, nbytes
from simcuda.launches import elementwise
from simcuda.reductions import arithmetic, reduction
from simcuda.rules.registry import Rule

FAMILIES = {
    "sum": ("sum", "nansum", "prod", "mean"),
    "norm": ("norm", "linalg_vector_norm"),
    "extremum": ("amax", "amin"),
    "logical": ("any", "all"),
    "argument": ("argmax", "argmin"),
    "moment": ("var", "std", "var_mean", "std_mean"),
}
FAMILY_OF = {f"aten.{name}": family for family, names in FAMILIES.items() for name in names}
WHOLE = ("aten.max.default", "aten.min.default")
ALONG = ("aten.max.dim", "aten.min.dim")


def _family(op: str) -> str:
    if op in WHOLE:
        return "extremum"
    return "argument" if op in ALONG else FAMILY_OF[op.rpartition(".")[0]]


def _reduce(call: Call) -> Cost:
    tensor, result = call.tensors()[0], call.results()[0]
    if not tensor.numel():
        return Cost(launches=elementwise(result.numel(), result.element_size()))
    family = _family(call.op)
    if family == "logical" and tensor.numel() == 1:
        return _one_value(tensor, result)
    half = tensor.dtype in (torch.float16, torch.bfloat16)
    how = arithmetic(family, tensor.element_size(), half=half)
    dimensions = _dimensions(call, tensor)
    work = reduction(
        tuple(tensor.shape), tensor.stride(), dimensions, how, call.profile, result.element_size()
    )
    temporaries = (work.accumulator_bytes,) if work.accumulator_bytes else ()
    return Cost(launches=work.launches, temporaries=temporaries, workspaces=work.workspaces)


def _one_value(tensor: torch.Tensor, result: torch.Tensor) -> Cost:
    if tensor.dtype == result.dtype:
        return Cost(copies=(("d2d", nbytes(result)),))
    return Cost(launches=1)


def _dimensions(call: Call, tensor: torch.Tensor) -> tuple[int, ...]:
    dim = call.argument("dim")
    if dim is None or dim == []:
        return tuple(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(d % max(tensor.dim(), 1) for d in dims) if tensor.dim() else ()


TOPIC = (
    Rule(
        id="reduce",
        ops=(*FAMILY_OF, *WHOLE, *ALONG),
        counts=_reduce,
        source="ATen/native/cuda/Reduce.cuh: one kernel; a workspace where blocks share a result",
        example="x.sum()",
    ),
)
