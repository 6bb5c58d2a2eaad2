"""Operations that are one kernel of ATen, and those that are a known few."""

from __future__ import annotations

from dataclasses import replace

import torch

from simcuda.cost.call import ONE_KERNEL, Call, Cost, nbytes
from simcuda.cost.launches import elementwise
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.registry import Rule

HALF_BYTES = 2
POSITION_BYTES = 8

UNTAGGED = (
    *("abs_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "gcd_", "lcm_", "heaviside_", "copysign_"),
    *("threshold_", "gelu_", "mish_", "xlogy_", "floor_divide", "floor_divide_", "rsub", "__irshift__"),
    *("fill_", "fill", "hardswish", "hardswish_", "hardswish_backward", "hardtanh_backward"),
    *("hardsigmoid_backward", "hardshrink_backward", "softshrink_backward", "softplus_backward"),
    *("mish_backward", "elu_backward", "leaky_relu_backward", "_prelu_kernel", "_prelu_kernel_backward"),
    *("rrelu_with_noise", "rrelu_with_noise_", "rrelu_with_noise_backward", "glu", "glu_backward"),
    *("log_sigmoid_forward", "log_sigmoid_backward", "mse_loss_backward", "huber_loss_backward"),
    *("smooth_l1_loss_backward", "binary_cross_entropy_backward", "isnan", "isposinf", "isneginf"),
    *("complex", "polar", "lerp_", "where", "tril", "triu", "tril_", "triu_", "flip", "roll"),
)
"""Elementwise operations that PyTorch does not tag as such."""

LAYERS = (
    *("nll_loss_forward", "native_dropout", "native_dropout_backward"),
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d"),
    *("upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    *("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
    *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d"),
    *("replication_pad2d", "replication_pad3d", "grid_sampler_2d", "grid_sampler_3d"),
    *("bucketize", "searchsorted", "repeat", "tril_indices", "triu_indices", "trace"),
    *("poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "normal.float_float"),
    "_amp_update_scale_",
)

ONE = (*UNTAGGED, *LAYERS)

FILLED_FIRST = (
    *("eye", "constant_pad_nd", "diag_embed", "nll_loss_backward", "max_pool2d_with_indices_backward"),
    *("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward"),
    *("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"),
)


def _one(call: Call) -> Cost:
    return Cost(max((elementwise(t.numel(), t.element_size()) for t in call.outputs), default=0))


def _fill_then_kernel(call: Call) -> Cost:
    return Cost(2 if call.outputs[0].numel() else 0)


def _loss(call: Call) -> Cost:
    tensor = call.args[0]
    reduced = _reduced(call, tensor)
    if reduced is None:
        return _one(call)
    return replace(reduced, workspaces=(nbytes(tensor), *reduced.workspaces))


def _cross_entropy(call: Call) -> Cost:
    """Reduced into a tensor of its own, which is copied over the elements' losses."""
    tensor = call.args[0]
    reduced = _reduced(call, tensor)
    if reduced is None:
        return _one(call)
    size = tensor.element_size()
    return replace(reduced, copies=(("d2d", size),), workspaces=(size, *reduced.workspaces))


def _reduced(call: Call, tensor: torch.Tensor) -> Cost | None:
    if not call.argument("reduction", 1):
        return None
    if not tensor.numel():
        return ONE_KERNEL
    how = arithmetic("sum", tensor.element_size(), half=tensor.element_size() == HALF_BYTES)
    work = reduce_all(tensor.numel(), how, call.profile)
    kernels = elementwise(tensor.numel(), tensor.element_size())
    return Cost(kernels + work.launches, workspaces=work.workspaces)


def _search_by_order(call: Call) -> Cost:
    """The least and the largest position in the given order are read before anything is searched."""
    ends = (("d2h", POSITION_BYTES),) * 2
    return Cost(1 + _one(call).launches, 2, 0, ends, (POSITION_BYTES,) * 2)


TOPIC = (
    Rule(
        id="search-by-order",
        ops=("aten.searchsorted",),
        when=lambda call: call.argument("sorter") is not None and bool(call.argument("sorter").numel()),
        counts=_search_by_order,
        source="ATen/native/BucketizationUtils.h: the positions given are checked, by two reads",
        example="torch.searchsorted(y, x, sorter=index)",
    ),
    Rule(
        id="assertion",
        ops=("aten._assert_async",),
        counts=ONE_KERNEL,
        source="ATen/native/cuda/TensorCompare.cu: the device itself complains",
        example="torch._assert_async(value > -1)",
    ),
    Rule(
        id="one-kernel",
        ops=tuple(f"aten.{name}" for name in ONE),
        counts=_one,
        source="ATen/native/cuda: one kernel, the results the only allocations",
        example="torch.trace(x[:4].view(2, 2))",
    ),
    Rule(
        id="fill-then-kernel",
        ops=tuple(f"aten.{name}" for name in FILLED_FIRST),
        counts=_fill_then_kernel,
        source="ATen/native: a fill, then one kernel on a part",
        example="torch.eye(3, device='cuda')",
    ),
    Rule(
        id="elementwise-loss",
        ops=("aten.mse_loss", "aten.smooth_l1_loss", "aten.huber_loss"),
        counts=_loss,
        source="ATen/native/Loss.cpp: the elements' losses in a temporary, then a reduction",
        example="torch.nn.functional.mse_loss(x, x + 1)",
    ),
    Rule(
        id="binary-cross-entropy",
        ops=("aten.binary_cross_entropy",),
        counts=_cross_entropy,
        source="ATen/native/cuda/Loss.cu: the losses, their reduction, and a copy of it over the losses",
        example="torch.nn.functional.binary_cross_entropy(x, x)",
    ),
)
