"""The backward pass as on CUDA, where torch takes every simulated tensor for a CPU tensor.

Some formulas have a separate branch for CUDA, which is implemented here. And if a tensor gets several
gradients, the autograd engine adds the new one in place to the old one, provided that nothing else holds it.
Here Python holds every storage too, so the engine would make a new tensor and raise the peak. Therefore the
addition is done in place here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from simcuda.cost.copies import same_bytes

EXTREMES = ("max", "min", "median", "nanmedian")

# References that exist in any case: torch, two tuples of arguments, a local name and the counting itself.
_HELD_BY_THE_ARGUMENTS = 6
# Besides the engine: the argument itself, and what Python's wrapper holds.
_HELD_BY_THE_ENGINE = 3
_STORAGE_HELD_BY_ONE_TENSOR = 2

ADDING = frozenset(
    f"{name}Backward0"
    for name in (
        *("Atan2", "Cholesky", "CholeskyInverse", "CholeskySolve", "LinalgCholeskyEx", "LinalgDet"),
        *("LinalgLstsq", "LinalgLu", "LinalgLuFactorEx", "LinalgLuSolve", "LinalgPinv", "LinalgQr"),
        *("LinalgSvd", "Logcumsumexp", "LuUnpack", "Mvlgamma", "NativeGroupNorm", "SpecialI1E"),
        *("SpecialLogNdtr", "StdMean", "TriangularSolve", "VarMean"),
    )
)
"""Formulas that add tensors themselves: what is added there is taken for theirs, not for the engine's."""


class _Extreme(torch.autograd.Function):
    """One element of a tensor, whose gradient is shared by all elements equal to it.

    By ``evenly_distribute_backward`` in torch/csrc/autograd/FunctionsManual.cpp: on CUDA nothing is read.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, original: Callable[[Tensor], Tensor]) -> Tensor:
        value = original(tensor)
        ctx.save_for_backward(tensor, value)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        tensor, value = ctx.saved_tensors
        both_nan = tensor.isnan().logical_and_(value.isnan())
        mask = (tensor == value).logical_or_(both_nan)
        return mask * (gradients[0] / mask.sum()), None


def shared_evenly(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """One of ``EXTREMES``, with the gradient that it has on CUDA."""
    if (
        len(args) == 1
        and not kwargs
        and isinstance(args[0], Tensor)
        and args[0].requires_grad
        and torch.is_grad_enabled()
        and args[0].is_cuda
        # Under vmap and its kin, and in forward mode, the formula is CUDA's already, or none is taken.
        and not torch._C._functorch.is_functorch_wrapped_tensor(args[0])
        and torch.autograd.forward_ad._current_level < 0
    ):
        extreme_with_gradient: Any = _Extreme.apply
        return extreme_with_gradient(args[0], original)
    return original(*args, **kwargs)


def is_in_backward() -> bool:
    """Whether the autograd engine is at work."""
    return torch._C._current_graph_task_id() != -1


def joins_gradients(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bool:
    """Whether an addition is the engine's, to a gradient that nothing else holds."""
    if kwargs or len(args) != 2 or not is_in_backward() or torch.is_grad_enabled():
        return False
    old = args[0]
    if not isinstance(old, torch.Tensor) or old is args[1] or sys.getrefcount(old) > _HELD_BY_THE_ARGUMENTS:
        return False
    # Anything else that holds the tensor or its storage would see the sum.
    storage = old.untyped_storage()
    return (
        cast("Any", old)._use_count() <= _HELD_BY_THE_ENGINE
        and torch._C._storage_Use_Count(storage._cdata) <= _STORAGE_HELD_BY_ONE_TENSOR
        and isinstance(args[1], torch.Tensor)
        and old.dtype == args[1].dtype
        and old.shape == args[1].shape
        and same_bytes(old, old)
        and torch._C._current_autograd_node().name() not in ADDING
    )
