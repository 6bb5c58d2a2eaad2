"""Kernels for the host of operations that have a CUDA kernel and a composite.

Autograd takes the composite apart where an operation has no kernel for the host, and its formula where it has
one, as on CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from simcuda.costs.stand_ins import gradients
from simcuda.device.dispatch_key import recording_gradients, unwatched

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_FUSED_RMS_NORM = torch.ops.aten._fused_rms_norm.default._op_dk


@unwatched
def _rms_norm(*args: Any) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _FUSED_RMS_NORM(_COMPOSITE, *args)
    return result


@unwatched
def _rms_norm_backward(
    gradient: Tensor,
    tensor: Tensor,
    shape: Sequence[int],
    deviation: Tensor,
    weight: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of the input, whose rows were multiplied by ``deviation``, and of the weight."""
    with recording_gradients():
        leaves = [
            each.detach().requires_grad_()
            for each in (tensor, weight)
            if each is not None
        ]
        wide = leaves[0].to(deviation.dtype)
        squares = wide.square().mean(tuple(range(-len(shape), 0)), keepdim=True)
        # What was added to the mean of the squares has no gradient.
        result = wide * (squares + (deviation**-2 - squares).detach()).rsqrt()
        for leaf in leaves[1:]:
            result = result * leaf
        found = [*gradients([result], [gradient], leaves), None]
    return found[0] if mask[0] else None, found[1] if mask[1] else None


KERNELS: Mapping[str, Callable[..., Any]] = {
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
}


@contextmanager
def registered() -> Iterator[None]:
    """Register ``KERNELS`` for the time of the block."""
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]  # not annotated
    for name, kernel in KERNELS.items():
        # Past the table of kernels that users replace.
        library.m.impl(name, "CPU", kernel)
    try:
        yield
    finally:
        library._destroy()
