"""Layers that walk rows: their kernels read contiguous memory, so that other memory is copied first."""

from __future__ import annotations

import torch

from simcuda.cost.call import FREE, OpCost, OperationCall
from simcuda.cost.copies import contiguous
from simcuda.cost.reductions import arithmetic, reduction
from simcuda.cost.rules.rule import HALVES, CostRule

VECTOR = 4
VECTORIZED = (torch.float32, *HALVES)
MANY_ROWS = 64 * 1024
COLUMNS_OF_A_BLOCK = 32
ROWS_OF_A_BLOCK = 32
MOST_BLOCKS = 32 * 1024


def _dense(*tensors: torch.Tensor | None) -> OpCost:
    return sum((contiguous(tensor) for tensor in tensors if tensor is not None), FREE)


def _layer_norm(call: OperationCall) -> OpCost:
    """One kernel where rows are whole vectors of 4, else the moments by one and the result by another."""
    tensor = call.args[0]
    dense = _dense(tensor, call.argument("weight"), call.argument("bias"))
    if not tensor.numel():
        return dense
    columns = torch.Size(call.argument("normalized_shape")).numel()
    return dense + OpCost(1 if columns % VECTOR == 0 and tensor.dtype in VECTORIZED else 2)


def _layer_norm_backward(call: OperationCall) -> OpCost:
    """The gradient of the input by one kernel, those of weight and bias by another.

    Many short rows are added up in parts: a partial sum for each block, and a reduction for each gradient.
    """
    tensor, mask = call.argument("input"), call.argument("output_mask")
    dense = _dense(*(call.argument(name) for name in ("grad_out", "input", "mean", "rstd", "weight")))
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
    how = arithmetic("sum", size, half=tensor.dtype in HALVES)
    work = reduction((parts, columns), (columns, 1), (0,), how, call.profile, size)
    sums = (parts * columns * size,) * parameters
    return cost + OpCost(parameters * work.launches, workspaces=(*sums, *work.workspaces))


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


TOPIC = (
    CostRule(
        id="group-norm",
        ops=("aten.native_group_norm",),
        counts=_group_norm,
        source="ATen/native/cuda/group_norm_kernel.cu: RowwiseMoments, ComputeFusedParams, and the result",
        example="torch.nn.functional.group_norm(x.view(1, 4, 2), 2)",
    ),
    CostRule(
        id="softmax",
        ops=("aten._softmax", "aten._log_softmax"),
        counts=lambda call: _dense(call.args[0]) + OpCost(int(call.outputs[0].numel() > 0)),
        source="ATen/native/cuda/SoftMax.cu: one kernel on contiguous memory",
        example="x.softmax(0)",
    ),
    CostRule(
        id="gradient-of-softmax",
        ops=("aten._softmax_backward_data", "aten._log_softmax_backward_data"),
        counts=lambda call: _dense(*call.args[:2]) + OpCost(int(call.outputs[0].numel() > 0)),
        source="ATen/native/cuda/SoftMax.cu: one kernel on a contiguous gradient and result",
        example="torch.ops.aten._softmax_backward_data(x, x, 0, x.dtype)",
    ),
    CostRule(
        id="layer-norm",
        ops=("aten.native_layer_norm",),
        counts=_layer_norm,
        source="ATen/native/cuda/layer_norm_kernel.cu: one kernel for rows of whole vectors, else two",
        example="torch.nn.functional.layer_norm(x, (8,))",
    ),
    CostRule(
        id="gradient-of-layer-norm",
        ops=("aten.native_layer_norm_backward",),
        counts=_layer_norm_backward,
        source="ATen/native/cuda/layer_norm_kernel.cu: more than 65536 short rows are added up in parts",
        example="torch.nn.functional.layer_norm(torch.ones(4, device='cuda', requires_grad=True), (4,))"
        ".sum().backward()",
    ),
)
