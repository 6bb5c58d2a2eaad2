"""Layers over images and sequences, whose kernels read dense memory: other memory is copied first."""

from __future__ import annotations

import math

import torch
from torch._prims_common import suggest_memory_format

from simcuda.cost.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.cost.copies import contiguous, copied_within
from simcuda.cost.launches import kernels_over
from simcuda.cost.rules.kernels import one_kernel
from simcuda.cost.rules.rule import CostRule

CONTIGUOUS = torch.contiguous_format
FEWEST_CHANNELS_LAST = 4
ROWS_OF_CLASSES = 2

DENSE = (
    *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d", "avg_pool3d"),
)
POOLS = ("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d")
ADAPTIVE_POOLS = (
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
)
NEAREST = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
)


def _into(result: torch.Tensor) -> OpCost:
    """The kernel writes dense memory of its own, which is copied into a result that is not dense."""
    return FREE if result.is_contiguous() else OpCost(kernels_over(result), temporaries=(result.nbytes,))


def _on_dense(call: OperationCall) -> OpCost:
    tensor = call.args[0]
    keeps = call.op.split(".")[1] in POOLS
    return contiguous(tensor, suggest_memory_format(tensor) if keeps else CONTIGUOUS) + one_kernel(call)


def _adaptive_pool(call: OperationCall) -> OpCost:
    """Kernels follow the strides of a single image, and averages those of channels last too."""
    tensor, name = call.args[0], call.op.split(".")[1]
    is_batch = tensor.dim() == (4 if name.endswith("2d") else 5)
    takes_strides = name == "_adaptive_avg_pool2d" and (suggest_memory_format(tensor) is torch.channels_last)
    dense = contiguous(tensor) if is_batch and not takes_strides else FREE
    results = call.outputs if name.startswith("adaptive_max") else []
    return sum(map(_into, results), dense + one_kernel(call))


def _resize(call: OperationCall) -> OpCost:
    tensor, result = call.args[0], call.outputs[0]
    if call.op.split(".")[1].endswith("2d"):
        if tensor.shape == result.shape:
            return copied_within(result, tensor)
        if "bilinear" in call.op:
            return one_kernel(call)
        is_last = suggest_memory_format(tensor) is torch.channels_last
        if is_last and tensor.shape[1] >= FEWEST_CHANNELS_LAST:
            return contiguous(tensor, torch.channels_last) + one_kernel(call)
    return contiguous(tensor) + one_kernel(call) + _into(result)


def _max_pool_backward(call: OperationCall) -> OpCost:
    tensors = [call.argument(name) for name in ("grad_output", "self", "indices")]
    layout = suggest_memory_format(tensors[1])
    return sum((contiguous(tensor, layout) for tensor in tensors), OpCost(2 if tensors[0].numel() else 0))


def _negative_log_likelihood(call: OperationCall) -> OpCost:
    """The weights that are added up are cleared where nothing is added up."""
    given = [call.argument(name) for name in ("self", "target", "weight")]
    tensor, target = given[:2]
    dense = sum((contiguous(each) for each in given if each is not None), FREE)
    if not call.argument("reduction", 1) and tensor.dim() == ROWS_OF_CLASSES:
        return dense + ONE_KERNEL + OpCost(int(target.numel() > 0))
    return dense + OpCost(1 if target.numel() else 2)


TOPIC = (
    CostRule(
        id="layer-on-dense",
        ops=tuple(f"aten.{name}" for name in (*DENSE, *POOLS)),
        counts=_on_dense,
        source="ATen/native/cuda/ReflectionPad.cu, ReplicationPadding.cu, AveragePool3d.cu: one kernel on "
        "input.contiguous(); DilatedMaxPool2d.cu, DilatedMaxPool3d.cu, AveragePool2d.cu: or channels last",
        example="torch.nn.functional.pad(x.view(1, 2, 4).mT, (1, 1), mode='reflect')",
    ),
    CostRule(
        id="adaptive-pool",
        ops=tuple(f"aten.{name}" for name in ADAPTIVE_POOLS),
        counts=_adaptive_pool,
        source="ATen/native/cuda/AdaptiveAveragePooling.cu, AdaptiveAveragePooling3d.cu, "
        "AdaptiveMaxPooling2d.cu, AdaptiveMaxPooling3d.cu: one kernel; a batch is made contiguous",
        example="torch.nn.functional.adaptive_avg_pool2d(x.view(1, 1, 2, 4).mT, (2, 1))",
    ),
    CostRule(
        id="gradient-of-max-pool",
        ops=("aten.max_pool2d_with_indices_backward",),
        counts=_max_pool_backward,
        source="ATen/native/cuda/DilatedMaxPool2d.cu: zeros, one kernel; all three laid out as the input is",
        example="torch.nn.functional.max_pool2d(x.requires_grad_().view(1, 2, 4), 2).sum().backward()",
    ),
    CostRule(
        id="resize",
        ops=tuple(f"aten.{name}" for name in (*NEAREST, "upsample_bilinear2d")),
        counts=_resize,
        source="ATen/native/cuda/UpSampleNearest1d.cu, UpSampleNearest2d.cu, UpSampleNearest3d.cu: one "
        "kernel on input.contiguous(), into a contiguous result; UpSampleBilinear2d.cu: follows strides",
        example="torch.nn.functional.interpolate(x.view(1, 2, 4).mT, scale_factor=2)",
    ),
    CostRule(
        id="columns",
        ops=("aten.im2col",),
        counts=lambda call: contiguous(call.args[0]) + OpCost(math.prod(call.args[0].shape[:-3])),
        source="ATen/native/cuda/Im2Col.cu: input.contiguous(), then one kernel an image",
        example="torch.nn.functional.unfold(x.view(2, 1, 2, 2), 2)",
    ),
    CostRule(
        id="negative-log-likelihood",
        ops=("aten.nll_loss_forward",),
        counts=_negative_log_likelihood,
        source="ATen/native/cuda/Loss.cu: contiguous inputs, one kernel; total_weight.zero_() without a "
        "reduction",
        example="torch.nn.functional.nll_loss(torch.rand(3, 4, device='cuda'), index)",
    ),
)
