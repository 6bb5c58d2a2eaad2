"""Layers, whose kernels read dense memory: other memory is copied first. Fake quantization is one, too."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from simcuda.basis import in_aten, operations
from simcuda.costs.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.costs.copies import contiguous, copied_within
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduction
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.rule import HALVES, CostRule

CONTIGUOUS = torch.contiguous_format
FEWEST_CHANNELS_LAST = 4
ROWS_OF_CLASSES = 2

POOLS = ("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d")


def _into(result: Tensor) -> OpCost:
    """The kernel writes dense memory of its own, which is copied into a result that is not dense."""
    return (
        FREE
        if result.is_contiguous()
        else OpCost(kernels_over(result), temporaries=(result.nbytes,))
    )


_STATE = "torch.tensor([1], device='cuda'), torch.tensor([1], device='cuda'), "


_RANGES = (
    ", ".join(["torch.zeros({0}, device='cuda')"] * 3)
    + ", torch.zeros({0}, device='cuda').int()"
)


@CostRule(
    id="layer-on-dense",
    ops=in_aten((*operations("layers on dense"), *POOLS)),
    source="ATen/native/cuda/ReflectionPad.cu, AveragePool3d.cu, RreluWithNoise.cu: one kernel on "
    "input.contiguous(); DilatedMaxPool2d.cu, DilatedMaxPool3d.cu, AveragePool2d.cu: or channels last",
    example="torch.nn.functional.pad(x.view(1, 2, 4).mT, (1, 1), mode='reflect')",
)
def _on_dense(call: OperationCall) -> OpCost:
    tensor = call.first
    keeps = call.op.split(".")[1] in POOLS
    return contiguous(
        tensor, suggest_memory_format(tensor) if keeps else CONTIGUOUS
    ) + one_kernel(call)


@CostRule(
    id="adaptive-pool",
    ops=in_aten(operations("adaptive pools")),
    source="ATen/native/cuda/AdaptiveAveragePooling.cu, AdaptiveAveragePooling3d.cu, "
    "AdaptiveMaxPooling2d.cu, AdaptiveMaxPooling3d.cu: one kernel; a batch is made contiguous",
    example="torch.nn.functional.adaptive_avg_pool2d(x.view(1, 1, 2, 4).mT, (2, 1))",
)
def _adaptive_pool(call: OperationCall) -> OpCost:
    """Kernels follow the strides of a single image; averages follow channels last, too."""
    tensor, name = call.first, call.op.split(".")[1]
    is_batch = tensor.dim() == (4 if name.endswith("2d") else 5)
    takes_strides = name == "_adaptive_avg_pool2d" and (
        suggest_memory_format(tensor) is torch.channels_last
    )
    dense = contiguous(tensor) if is_batch and not takes_strides else FREE
    results = call.outputs if name.startswith("adaptive_max") else []
    return sum(map(_into, results), dense + one_kernel(call))


@CostRule(
    id="resize",
    ops=in_aten(operations("resizing")),
    source="ATen/native/cuda/UpSampleNearest1d.cu, UpSampleNearest2d.cu, UpSampleNearest3d.cu: one "
    "kernel on input.contiguous(), into a contiguous result; UpSampleBilinear2d.cu: follows strides",
    example="torch.nn.functional.interpolate(x.view(1, 2, 4).mT, scale_factor=2)",
)
def _resize(call: OperationCall) -> OpCost:
    tensor, result = call.first, call.result
    if call.op.split(".")[1].endswith("2d"):
        if tensor.shape == result.shape:
            return copied_within(result, tensor)
        if "bilinear" in call.op:
            return one_kernel(call)
        is_last = suggest_memory_format(tensor) is torch.channels_last
        if is_last and tensor.shape[1] >= FEWEST_CHANNELS_LAST:
            return contiguous(tensor, torch.channels_last) + one_kernel(call)
    return contiguous(tensor) + one_kernel(call) + _into(result)


@CostRule(
    id="gradient-of-max-pool",
    ops=("aten.max_pool2d_with_indices_backward",),
    source="ATen/native/cuda/DilatedMaxPool2d.cu: zeros, one kernel; all three laid out as the input is",
    example="torch.nn.functional.max_pool2d(x.requires_grad_().view(1, 2, 4), 2).sum().backward()",
)
def _max_pool_backward(call: OperationCall) -> OpCost:
    tensors = [call.argument(name) for name in ("grad_output", "self", "indices")]
    layout = suggest_memory_format(tensors[1])
    return sum(
        (contiguous(tensor, layout) for tensor in tensors),
        OpCost(2 if tensors[0].numel() else 0),
    )


@CostRule(
    id="negative-log-likelihood",
    ops=("aten.nll_loss_forward",),
    source="ATen/native/cuda/Loss.cu: contiguous inputs, one kernel; total_weight.zero_() without a "
    "reduction",
    example="torch.nn.functional.nll_loss(torch.rand(3, 4, device='cuda'), index)",
)
def _negative_log_likelihood(call: OperationCall) -> OpCost:
    """The weights that are added up are cleared where nothing is added up."""
    given = [call.argument(name) for name in ("self", "target", "weight")]
    tensor, target = given[:2]
    dense = sum((contiguous(each) for each in given if each is not None), FREE)
    if not call.argument("reduction", 1) and tensor.dim() == ROWS_OF_CLASSES:
        return dense + ONE_KERNEL + OpCost(int(target.numel() > 0))
    return dense + OpCost(1 if target.numel() else 2)


CostRule(
    id="gradient-of-negative-log-likelihood",
    ops=("aten.nll_loss_backward",),
    source="ATen/native/cuda/Loss.cu: contiguous inputs, targets and weights, zeros, one kernel",
    example="torch.nn.functional.nll_loss(torch.ones(3, 4, device='cuda', requires_grad=True), index)"
    ".backward()",
)(lambda call: _dense(*call.args[1:4]) + OpCost(2 if call.result.numel() else 0))

VECTOR = 4
VECTORIZED = (torch.float32, *HALVES)
MANY_ROWS = 64 * 1024
COLUMNS_OF_A_BLOCK = 32
ROWS_OF_A_BLOCK = 32
MOST_BLOCKS = 32 * 1024


def _dense(*tensors: Tensor | None) -> OpCost:
    return sum((contiguous(tensor) for tensor in tensors if tensor is not None), FREE)


@CostRule(
    id="layer-norm",
    ops=("aten.native_layer_norm", "aten._fused_rms_norm"),
    source="ATen/native/cuda/layer_norm_kernel.cu: one kernel for rows of whole vectors, else two",
    example="torch.nn.functional.layer_norm(x, (8,))",
)
def _layer_norm(call: OperationCall) -> OpCost:
    """One kernel where rows are whole vectors of 4, else the moments by one and the result by another."""
    tensor = call.first
    dense = _dense(tensor, call.argument("weight"), call.argument("bias"))
    if not tensor.numel():
        return dense
    columns = torch.Size(call.argument("normalized_shape")).numel()
    return dense + OpCost(
        1 if columns % VECTOR == 0 and tensor.dtype in VECTORIZED else 2
    )


@CostRule(
    id="gradient-of-layer-norm",
    ops=("aten.native_layer_norm_backward", "aten._fused_rms_norm_backward"),
    source="ATen/native/cuda/layer_norm_kernel.cu: more than 65536 short rows are added up in parts",
    example="torch.nn.functional.layer_norm(torch.ones(4, device='cuda', requires_grad=True), (4,))"
    ".sum().backward()",
)
def _layer_norm_backward(call: OperationCall) -> OpCost:
    """The gradient of the input by one kernel, the gradients of weight and bias by a second one.

    Many short rows are added up in parts: a partial sum for each block, and a reduction for each gradient.
    """
    tensor, mask = call.argument("input"), call.argument("output_mask")
    dense = _dense(
        *(
            call.argument(name)
            for name in ("grad_out", "input", "mean", "rstd", "weight", "bias")
        )
    )
    if not tensor.numel():
        return dense
    # Weight and bias, if they want a gradient.
    parameters = sum(1 for wanted in mask[1:] if wanted)
    cost = dense + OpCost(int(mask[0]) + int(parameters > 0))
    columns = int(torch.Size(call.argument("normalized_shape")).numel())
    rows = tensor.numel() // columns
    # Wide rows keep half of the device busy without being cut up.
    resident = call.profile.multiprocessors // 2
    if not parameters or rows <= MANY_ROWS or columns // COLUMNS_OF_A_BLOCK >= resident:
        return cost
    # Blocks are 32 columns wide, and each adds up 32 rows at a time.
    across = -(-columns // COLUMNS_OF_A_BLOCK)
    parts = min(MOST_BLOCKS // across, -(-rows // ROWS_OF_A_BLOCK))
    size = tensor.element_size()
    how = Arithmetic("sum", size, tensor.dtype in HALVES)
    work = reduction((parts, columns), (columns, 1), (0,), how, call.profile, size)
    sums = (parts * columns * size,) * parameters
    return cost + OpCost(
        parameters * work.launches, workspaces=(*sums, *work.workspaces)
    )


@CostRule(
    id="group-norm",
    ops=("aten.native_group_norm",),
    source="ATen/native/cuda/group_norm_kernel.cu: RowwiseMoments, ComputeFusedParams, and the result",
    example="torch.nn.functional.group_norm(x.view(1, 4, 2), 2)",
)
def _group_norm(call: OperationCall) -> OpCost:
    """Moments, then the result; between them factor and offset of each channel, if they are wanted."""
    tensor, weight, bias = call.args[:3]
    dense = contiguous(tensor)
    if not tensor.numel():
        return dense
    images, channels, places = (call.argument(name) for name in ("N", "C", "HxW"))
    if places == 1 or (weight is None and bias is None):
        return dense + OpCost(2)
    size = max(4, tensor.element_size())
    return dense + OpCost(3, workspaces=(images * channels * size,) * 2)


SWITCH_BYTES = 8


@CostRule(
    id="fake-quantize-by-channel",
    ops=("aten.fake_quantize_per_channel_affine_cachemask",),
    source="ATen/native/quantized/FakeQuantPerChannelAffine.cpp: aminmax of whole zero points, both "
    "of which are read; cuda/FakeQuantizeCore.cu: a kernel for the mask and one for the values",
    example="torch.fake_quantize_per_channel_affine(y, y + 1, index.int(), 0, 0, 255)",
    approximate=True,
)
def _by_channel(call: OperationCall) -> OpCost:
    """The mask, then the values; before, the host reads the least and the largest of whole zero points."""
    zero_point, quantized = (
        call.argument("zero_point"),
        OpCost(2 * kernels_over(call.result)),
    )
    if zero_point.is_floating_point():
        return quantized
    return OpCost(1, waits=2, copies=(("d2h", zero_point.itemsize),) * 2) + quantized


@CostRule(
    id="observe-and-fake-quantize",
    ops=("aten._fused_moving_avg_obs_fq_helper",),
    source="ATen/native/quantized/cuda/FusedObsFakeQuant.cu: aminmax, a kernel for the moving average, "
    "one for scale and zero point; cuda/FakeQuantizeCore.cu: one kernel for values and mask. By channel a "
    "read of the switch and fake_quantize_per_channel_affine_cachemask",
    example=f"torch.fused_moving_avg_obs_fake_quant(y, {_STATE}{_RANGES.format(1)}, 0.1, 0, 255, 0)",
    approximate=True,
)
def _observed(call: OperationCall) -> OpCost:
    """The extremes, their moving average, scale and zero point of it, then values and mask in one kernel."""
    tensor, result = call.first, call.result
    observed = contiguous(tensor) + OpCost(3)
    if not call.argument("per_row_fake_quant", default=False):
        return observed + OpCost(kernels_over(result))
    # By rows the host reads whether to quantize at all.
    observed += OpCost(waits=1, copies=(("d2h", SWITCH_BYTES),))
    if call.argument("fake_quant_on").ne(0).item():
        return observed + _by_channel(call)
    return observed + ONE_KERNEL + copied_within(result, tensor)


@CostRule(
    id="columns",
    ops=("aten.im2col",),
    source="ATen/native/cuda/Im2Col.cu: input.contiguous(), then one kernel an image; the result begins as "
    "empty_like(input), and keeps its bytes when resize_ makes it larger",
    example="torch.nn.functional.unfold(x.view(2, 1, 2, 2), 2)",
)
def _columns(call: OperationCall) -> OpCost:
    """Run one kernel for each image; a result larger than the input is copied as it grows."""
    tensor, result = call.first, call.result
    kernels = contiguous(tensor) + OpCost(math.prod(tensor.shape[:-3]))
    if result.nbytes <= tensor.nbytes:
        return kernels
    return kernels + OpCost(
        copies=(("d2d", tensor.nbytes),), temporaries=(tensor.nbytes,)
    )


CostRule(
    id="softmax",
    ops=("aten._softmax", "aten._log_softmax"),
    source="ATen/native/cuda/SoftMax.cu: one kernel on contiguous memory",
    example="x.softmax(0)",
)(lambda call: _dense(call.first) + OpCost(int(call.result.numel() > 0)))

CostRule(
    id="gradient-of-log-softmax",
    ops=("aten._log_softmax_backward_data",),
    source="ATen/native/cuda/SoftMax.cu: one kernel on a contiguous gradient and result",
    example="torch.ops.aten._log_softmax_backward_data(x, x, 0, x.dtype)",
)(lambda call: _dense(*call.args[:2]) + OpCost(int(call.result.numel() > 0)))


@CostRule(
    id="gradient-of-softmax",
    ops=("aten._softmax_backward_data",),
    source="ATen/native/cuda/SoftMax.cu: grad * output by an elementwise kernel, then one kernel on both",
    example="torch.ops.aten._softmax_backward_data(x, x, 0, x.dtype)",
)
def _softmax_gradient(call: OperationCall) -> OpCost:
    """Make the product of gradient and result first: it is held until the kernel on both is queued."""
    gradient, result = call.args[:2]
    if not gradient.numel():
        return FREE
    product = OpCost(kernels_over(gradient), workspaces=(gradient.nbytes,))
    return product + _dense(result) + ONE_KERNEL
