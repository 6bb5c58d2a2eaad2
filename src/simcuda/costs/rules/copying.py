"""Copies within a device, of whole tensors, of the parts that views look at, and of several into one.

Copies between devices, and between host and device, are charged in ``costs/copies.py``.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import torch

from simcuda.basis import in_aten, operations
from simcuda.costs.call import FREE, LibraryWork, OpCost, OperationCall, tensors_in
from simcuda.costs.copies import copied_within
from simcuda.costs.launches import LARGEST_OFFSET, kernels_over
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.rule import INDEX_BYTES, CostRule

INPUTS_PER_CAT = 128
"""Contiguous inputs that one concatenation kernel copies; half as many where one is not contiguous."""
CAT_DIMENSIONS = 4
"""Most dimensions that the concatenation kernel handles."""


@CostRule(
    id="fill-with-tensor",
    ops=("aten.fill_.Tensor", "aten.fill.Tensor"),
    source="ATen/native/Fill.cpp: a device value is copied on the device, a host value is an argument",
    example="x.fill_(value)",
)
def _fill_from_tensor(call: OperationCall) -> OpCost:
    tensor, value = call.inputs[:2]
    # A single element of the same type needs no kernel.
    if (
        tensor.numel() == 1
        and tensor.dtype == value.dtype
        and not call.is_on_host(value)
    ):
        return OpCost(copies=(("d2d", tensor.nbytes),))
    return OpCost(kernels_over(tensor))


@CostRule(
    id="concatenate",
    ops=("aten.cat",),
    source="ATen/native/cuda/Shape.cu: a kernel for each 128 inputs; only the result is allocated",
    example="torch.cat([x, x])",
)
def _concatenate(call: OperationCall) -> OpCost:
    """A kernel for each batch of inputs, or else each input on its own, as bytes or by a kernel."""
    result, inputs = call.result, list(tensors_in(call.argument("tensors")))
    are_dense = all(tensor.is_contiguous() for tensor in inputs)
    are_alike = all(tensor.dtype == result.dtype for tensor in inputs)
    dim = call.argument("dim", 0) % max(result.dim(), 1)
    fits = result.dim() <= CAT_DIMENSIONS and result.numel() < LARGEST_OFFSET
    if len(inputs) > 1 and are_alike and fits:
        batch = INPUTS_PER_CAT if are_dense else INPUTS_PER_CAT // 2
        # Batches of empty inputs are skipped only before the first that has elements.
        first = next(
            (place for place, tensor in enumerate(inputs) if tensor.numel()), None
        )
        return OpCost(0 if first is None else -(-len(inputs) // batch) - first // batch)
    cost, begin = FREE, 0
    for tensor in inputs:
        # What has no elements may have any shape.
        if tensor.numel():
            cost += copied_within(result.narrow(dim, begin, tensor.shape[dim]), tensor)
            begin += tensor.shape[dim]
    return cost


CostRule(
    id="clone",
    ops=("aten.clone", "aten.contiguous"),
    source="ATen/native/cuda/Copy.cu: bytes where both are dense alike, else one kernel",
    example="x.clone()",
)(lambda call: copied_within(call.result, call.inputs[0]))


@CostRule(
    id="gradient-of-unfold",
    ops=("aten.unfold_backward",),
    source="ATen/native/cuda/UnfoldBackwardKernel.cu, UnfoldBackward.h: zeros, then a range and a kernel; a "
    "copy where no parts overlap",
    example="torch.ops.aten.unfold_backward(torch.ones(2, 3, device='cuda'), [8], 0, 3, 2)",
)
def _unfold_backward(call: OperationCall) -> OpCost:
    """Charge zeros, and the sum of the parts in them.

    Parts that overlap are found by a kernel from their places, which are a range. Others are written by one
    copy through the view that made them.
    """
    gradient, result, (dim, size, step) = call.first, call.result, call.args[2:]
    filled = OpCost(kernels_over(result))
    if step >= size:
        return filled + copied_within(result.unfold(dim, size, step), gradient)
    return filled + OpCost(2, workspaces=(INDEX_BYTES * result.shape[dim],))


CostRule(
    id="look-otherwise",
    ops=in_aten(operations("free")),
    source="ATen/native/TensorShape.cpp: only sizes and strides change",
    example="x.unsqueeze_(0)",
)(FREE)

ADDRESS_BYTES = 8
_WIDENING = torch.bfloat16, torch.float32
_TABLE = LibraryWork(
    0,
    dict.fromkeys(
        ("h2d_bytes", "largest_allocation", "peak_bytes", "peak_allocated_bytes"),
        (0, inf),
    ),
)
"""How many blocks of threads there are decides how long a table is that tells each what to copy."""


def _with_table(addresses: int) -> OpCost:
    """One kernel that reads addresses and more, which are pinned and copied without a wait."""
    nbytes = ADDRESS_BYTES * addresses
    return OpCost(1, copies=(("h2d", nbytes),), workspaces=(nbytes,), library=_TABLE)


def _is_dense(tensor: torch.Tensor) -> bool:
    return bool(torch.ops.aten.is_non_overlapping_and_dense.default._op(tensor))


def _is_joined_by_table(call: OperationCall) -> bool:
    tensors, out = call.argument("tensors"), call.argument("out")
    if not all(tensor.is_contiguous() for tensor in tensors):
        return False
    return out is None or (
        _is_dense(out)
        and (
            out.dtype == tensors[0].dtype or (tensors[0].dtype, out.dtype) == _WIDENING
        )
    )


CostRule(
    id="join-chunks",
    ops=("aten._chunk_cat",),
    source="ATen/native/cuda/TensorShape.cu: addresses and sizes are pinned and copied without a wait; "
    "one kernel",
    example="torch._chunk_cat([x, y], 0, 2)",
    when=_is_joined_by_table,
    approximate=True,
)(lambda call: _with_table(len(call.argument("tensors"))))


CostRule(
    id="join-chunks-with-gaps",
    ops=("aten._chunk_cat",),
    source="ATen/native/TensorShape.cpp, _pad_chunk: each tensor is padded where it has to be, then cat",
    example="torch._chunk_cat([x.view(2, 4).mT], 0, 2)",
    approximate=True,
)(one_kernel)


@CostRule(
    id="split-into-tensors",
    ops=("aten.split_with_sizes_copy.out",),
    source="ATen/native/cuda/TensorShape.cu: addresses and sizes are pinned and copied without a wait, one "
    "kernel; of other types or with gaps, a copy into each",
    example="torch.split_with_sizes_copy(x, [3, 5], out=[y, x[3:].clone()])",
    approximate=True,
)
def _split_into(call: OperationCall) -> OpCost:
    """Parts of a tensor along a dimension, each copied into a tensor that is given."""
    tensor, outputs = call.first, call.argument("out")
    if all(
        _is_dense(each) and each.dtype == tensor.dtype for each in (tensor, *outputs)
    ):
        # Both addresses of each part.
        return _with_table(2 * len(outputs))
    parts = tensor.split_with_sizes(
        call.argument("split_sizes"), call.argument("dim", 0)
    )
    copied = sum(
        (copied_within(out, part) for out, part in zip(outputs, parts, strict=True)),
        FREE,
    )
    return replace(copied, library=LibraryWork(0, {}))
