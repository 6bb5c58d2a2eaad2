"""Kernels for the host of operations that CUDA has beside a composite.

Autograd takes the composite apart where an operation has no kernel for the host, and its formula where it has
one, as on CUDA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from simcuda.device.dispatch_key import unwatched

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
    rows = (-1, math.prod(shape))
    wide = deviation.dtype
    given, normal = (each.reshape(rows).to(wide) for each in (gradient, tensor))
    normal = normal * deviation.reshape(-1, 1)
    scaled = given if weight is None else given * weight.reshape(1, -1).to(wide)
    of_input = (scaled - normal * (scaled * normal).mean(1, keepdim=True)) * deviation.reshape(-1, 1)
    of_weight = None
    if weight is not None and mask[1]:
        of_weight = (given * normal).sum(0).reshape(weight.shape).to(weight.dtype)
    return of_input.reshape(tensor.shape).to(tensor.dtype) if mask[0] else None, of_weight


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
