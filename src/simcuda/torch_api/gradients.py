"""Gradients whose formula asks for the device's type, and takes another way on CUDA.

Torch calls every simulated tensor a CPU tensor there, so these formulas are written here as CUDA has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from simcuda.torch_api.patches import Patches

EXTREMES = ("max", "min", "median", "nanmedian")


def install(patches: Patches) -> None:
    """Let the gradients of everything called here be those of CUDA."""
    for name in EXTREMES:
        for owner in (torch, torch.Tensor):
            patches.set(owner, **{name: _shared_evenly(getattr(owner, name))})


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


_extreme_with_gradient: Any = _Extreme.apply


def _shared_evenly(original: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _is_differentiated(args[0]):
            return _extreme_with_gradient(args[0], original)
        return original(*args, **kwargs)

    return function


def _is_differentiated(tensor: Any) -> bool:
    return (
        isinstance(tensor, Tensor)
        and tensor.requires_grad
        and torch.is_grad_enabled()
        and tensor.is_cuda
        # Under vmap and its kin, and in forward mode, the formula is CUDA's already, or none is taken.
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        and torch.autograd.forward_ad._current_level < 0
    )
