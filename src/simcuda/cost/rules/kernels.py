"""Operations that are one kernel of ATen, and those that are a known few."""

from __future__ import annotations

import torch

from simcuda.cost.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.cost.launches import kernels_over
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.rule import HALF_BYTES, CostRule

POSITION_BYTES = 8

UNFILLED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
FILLED = (
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"),
    *("zero_", "scalar_tensor", "arange", "linspace.default", "linspace.out"),
    *("logspace.default", "logspace.out"),
    *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "uniform_", "normal_"),
    "random_",
    *("bernoulli_", "bernoulli", "exponential_", "cauchy_", "geometric_", "log_normal_"),
)

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


def one_kernel(call: OperationCall) -> OpCost:
    """One kernel over the result, or over the largest of several results."""
    return OpCost(max(map(kernels_over, call.outputs), default=0))


def _range_between_tensors(call: OperationCall) -> OpCost:
    # A host tensor is a number already.
    ends = [end for end in call.args[:2] if isinstance(end, torch.Tensor) and not call.is_on_host(end)]
    reads = tuple(("d2h", end.element_size()) for end in ends)
    return OpCost(waits=len(ends), copies=reads) + one_kernel(call)


def _isinf(call: OperationCall) -> OpCost:
    (tensor,) = call.inputs
    if not tensor.is_floating_point():
        return OpCost(kernels_over(tensor))
    # The absolute values are kept for the comparison.
    return OpCost(2 * kernels_over(tensor), temporaries=(tensor.nbytes,))


def _loss(call: OperationCall) -> OpCost:
    """The losses of the elements and, unless these are the result, their reduction."""
    tensor = call.args[0]
    # 0 means no reduction.
    if not call.argument("reduction", 1):
        return one_kernel(call)
    size = tensor.element_size()
    if call.op.startswith("aten.binary_cross_entropy."):
        # Reduced into a tensor of its own, which is copied over the elements' losses.
        around = OpCost(copies=(("d2d", size),), workspaces=(size,))
    else:
        around = OpCost(workspaces=(tensor.nbytes,))
    if not tensor.numel():
        return around + ONE_KERNEL
    work = reduce_all(tensor.numel(), arithmetic("sum", size, half=size == HALF_BYTES), call.profile)
    return around + OpCost(kernels_over(tensor) + work.launches, workspaces=work.workspaces)


def _search_by_order(call: OperationCall) -> OpCost:
    """The least and the largest position in the given order are read before anything is searched."""
    ends = (("d2h", POSITION_BYTES),) * 2
    checks = OpCost(launches=1, waits=2, copies=ends, temporaries=(POSITION_BYTES,) * 2)
    return checks + one_kernel(call)


TOPIC = (
    CostRule(
        id="make-unfilled",
        ops=tuple(f"aten.{name}" for name in (*UNFILLED, "resize_", "set_")),
        counts=FREE,
        source="ATen/native/cuda/TensorFactories.cu: an allocation only",
        example="torch.empty(4, device='cuda')",
    ),
    CostRule(
        id="make-filled",
        ops=tuple(f"aten.{name}" for name in FILLED),
        counts=one_kernel,
        source="ATen/native/TensorFactories.cpp: empty, then one kernel that fills",
        example="torch.zeros(4, device='cuda')",
    ),
    CostRule(
        id="range-between-tensors",
        ops=("aten.linspace.*Tensor*", "aten.logspace.*Tensor*"),
        counts=_range_between_tensors,
        source="ATen/native/RangeFactories.cpp: each end that is a tensor is read",
        example="torch.linspace(value, value, 4, device='cuda')",
    ),
    CostRule(
        id="isinf",
        ops=("aten.isinf",),
        counts=_isinf,
        source="ATen/native/TensorCompare.cpp: abs, then eq; a fill for integers",
        example="torch.isinf(x)",
        when=lambda call: not call.inputs[0].is_complex(),
    ),
    CostRule(
        id="search-by-order",
        ops=("aten.searchsorted",),
        when=lambda call: call.argument("sorter") is not None and bool(call.argument("sorter").numel()),
        counts=_search_by_order,
        source="ATen/native/BucketizationUtils.h: the positions given are checked, by two reads",
        example="torch.searchsorted(y, x, sorter=index)",
    ),
    CostRule(
        id="assertion",
        ops=("aten._assert_async",),
        counts=ONE_KERNEL,
        source="ATen/native/cuda/TensorCompare.cu: the check runs on the device",
        example="torch._assert_async(value > -1)",
    ),
    CostRule(
        id="one-kernel",
        ops=tuple(f"aten.{name}" for name in ONE),
        counts=one_kernel,
        source="ATen/native/cuda: one kernel; only the results are allocated",
        example="torch.trace(x[:4].view(2, 2))",
    ),
    CostRule(
        id="fill-then-kernel",
        ops=tuple(f"aten.{name}" for name in FILLED_FIRST),
        counts=lambda call: OpCost(2 if call.outputs[0].numel() else 0),
        source="ATen/native: a fill, then one kernel on a part",
        example="torch.eye(3, device='cuda')",
    ),
    CostRule(
        id="elementwise-loss",
        ops=("aten.mse_loss", "aten.smooth_l1_loss", "aten.huber_loss"),
        counts=_loss,
        source="ATen/native/Loss.cpp: the elements' losses in a temporary, then a reduction",
        example="torch.nn.functional.mse_loss(x, x + 1)",
    ),
    CostRule(
        id="binary-cross-entropy",
        ops=("aten.binary_cross_entropy",),
        counts=_loss,
        source="ATen/native/cuda/Loss.cu: the losses, their reduction, and a copy of it over the losses",
        example="torch.nn.functional.binary_cross_entropy(x, x)",
    ),
)
