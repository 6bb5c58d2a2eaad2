"""Layers that walk rows: their kernels read contiguous memory, so that other memory is copied first."""

from __future__ import annotations

import torch

from simcuda.cost.call import Call, Cost
from simcuda.cost.reductions import arithmetic, reduction
from simcuda.cost.rules.counting import contiguous
from simcuda.cost.rules.registry import Rule

VECTOR = 4
HALVES = (torch.float16, torch.bfloat16)
VECTORIZED = (torch.float32, *HALVES)
MANY_ROWS = 64 * 1024
COLUMNS_OF_A_BLOCK = 32
ROWS_OF_A_BLOCK = 32
MOST_BLOCKS = 32 * 1024


def _dense(*tensors: torch.Tensor | None) -> Cost:
    costs = [contiguous(tensor) for tensor in tensors if tensor is not None]
    return Cost(
        sum(kernels for kernels, _ in costs), temporaries=tuple(b for _, sizes in costs for b in sizes)
    )


def _softmax(call: Call) -> Cost:
    dense = _dense(call.args[0])
    return Cost(dense.launches + int(call.outputs[0].numel() > 0), temporaries=dense.temporaries)


def _softmax_backward(call: Call) -> Cost:
    dense = _dense(call.args[0], call.args[1])
    return Cost(dense.launches + int(call.outputs[0].numel() > 0), temporaries=dense.temporaries)


def _columns(call: Call) -> int:
    return int(torch.Size(call.argument("normalized_shape")).numel())


def _layer_norm(call: Call) -> Cost:
    """One kernel where rows are whole vectors of 4, else the moments by one and the result by another."""
    tensor = call.args[0]
    dense = _dense(tensor, call.argument("weight"), call.argument("bias"))
    if not tensor.numel():
        return dense
    whole = _columns(call) % VECTOR == 0 and tensor.dtype in VECTORIZED
    return Cost(dense.launches + (1 if whole else 2), temporaries=dense.temporaries)


def _layer_norm_backward(call: Call) -> Cost:
    """The gradient of the input by one kernel, those of weight and bias by another.

    Many short rows are added up in parts: a partial sum for each block, and a reduction for each gradient.
    """
    tensor, mask = call.argument("input"), call.argument("output_mask")
    dense = _dense(*(call.argument(name) for name in ("grad_out", "input", "mean", "rstd", "weight")))
    if not tensor.numel():
        return dense
    parameters = sum(1 for wanted in mask[1:] if wanted)
    kernels = dense.launches + int(mask[0]) + int(parameters > 0)
    columns = _columns(call)
    rows = tensor.numel() // columns
    resident = call.profile.multiprocessors // 2
    if not parameters or rows <= MANY_ROWS or columns // COLUMNS_OF_A_BLOCK >= resident:
        return Cost(kernels, temporaries=dense.temporaries)
    across = -(-columns // COLUMNS_OF_A_BLOCK)
    parts = min(MOST_BLOCKS // across, -(-rows // ROWS_OF_A_BLOCK))
    size = tensor.element_size()
    how = arithmetic("sum", size, half=tensor.dtype in HALVES)
    work = reduction((parts, columns), (columns, 1), (0,), how, call.profile, size)
    return Cost(
        kernels + parameters * work.launches,
        temporaries=dense.temporaries,
        workspaces=(*(parts * columns * size,) * parameters, *work.workspaces),
    )


TOPIC = (
    Rule(
        id="softmax",
        ops=("aten._softmax", "aten._log_softmax"),
        counts=_softmax,
        source="ATen/native/cuda/SoftMax.cu: one kernel on contiguous memory",
        example="x.softmax(0)",
    ),
    Rule(
        id="gradient-of-softmax",
        ops=("aten._softmax_backward_data", "aten._log_softmax_backward_data"),
        counts=_softmax_backward,
        source="ATen/native/cuda/SoftMax.cu: one kernel on a contiguous gradient and result",
        example="torch.ops.aten._softmax_backward_data(x, x, 0, x.dtype)",
    ),
    Rule(
        id="layer-norm",
        ops=("aten.native_layer_norm",),
        counts=_layer_norm,
        source="ATen/native/cuda/layer_norm_kernel.cu: one kernel for rows of whole vectors, else two",
        example="torch.nn.functional.layer_norm(x, (8,))",
    ),
    Rule(
        id="gradient-of-layer-norm",
        ops=("aten.native_layer_norm_backward",),
        counts=_layer_norm_backward,
        source="ATen/native/cuda/layer_norm_kernel.cu: more than 65536 short rows are added up in parts",
        example="torch.nn.functional.layer_norm(torch.ones(4, device='cuda', requires_grad=True), (4,))"
        ".sum().backward()",
    ),
)
