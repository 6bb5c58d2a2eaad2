"""Copies within a device, of whole tensors, of the parts that views look at, and of several into one.

Copies between devices, and between host and device, are charged in ``costs/copies.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from math import inf
from typing import Any

import torch

from simcuda.basis import operations
from simcuda.costs.call import FREE, LibraryWork, OpCost, OperationCall, tensors_in
from simcuda.costs.copies import copied_within
from simcuda.costs.launches import LARGEST_OFFSET, elementwise, kernels_over
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.rule import CostRule

INPUTS_PER_CAT = 128
"""Contiguous inputs that one concatenation kernel copies; half as many where one is not contiguous."""
CAT_DIMENSIONS = 4
"""Most dimensions that the concatenation kernel handles."""

REARRANGED = ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")

VIEWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "select": (torch.ops.aten.select.int, {"dim": None, "index": None}),
    "slice": (torch.ops.aten.slice.Tensor, {"dim": 0, "start": None, "end": None, "step": 1}),
    "diagonal": (torch.ops.aten.diagonal.default, {"offset": 0, "dim1": 0, "dim2": 1}),
    "as_strided": (torch.ops.aten.as_strided.default, {"size": None, "stride": None, "storage_offset": None}),
}
"""Views of which operations write the part, and the arguments that say which part, with their defaults."""


def _part(call: OperationCall) -> torch.Tensor:
    """The part of the result that a view looks at, by the name of the operation that writes there."""
    name = call.op.split(".")[1].removesuffix("_backward").removesuffix("_scatter")
    view, arguments = VIEWS[name]
    part: torch.Tensor = view(call.outputs[0], *(call.argument(n, value) for n, value in arguments.items()))
    return part


@CostRule(
    id="pad-with-constant",
    ops=("aten.constant_pad_nd",),
    source="ATen/native/PadNd.cpp: a fill, then a copy into a part: bytes if rows are added at an end",
    example="torch.nn.functional.pad(x, (1, 1))",
)
def _pad(call: OperationCall) -> OpCost:
    """A fill, and a copy of what is kept into its place; where nothing is added, that copy alone."""
    source, result, widths = call.args[0], call.outputs[0], list(call.argument("pad"))
    place = result
    # Widths are given for the last dimension first; negative ones cut off.
    for dim, before, after in zip(range(source.dim())[::-1], widths[::2], widths[1::2], strict=False):
        start, end = max(-before, 0), source.shape[dim] - max(-after, 0)
        source = source.narrow(dim, start, end - start)
        place = place.narrow(dim, max(before, 0), end - start)
    filled = kernels_over(result) if max(widths, default=0) > 0 else 0
    return OpCost(filled) + copied_within(place, source)


@CostRule(
    id="fill-with-tensor",
    ops=("aten.fill_.Tensor", "aten.fill.Tensor"),
    source="ATen/native/Fill.cpp: a device value is copied on the device, a host value is an argument",
    example="x.fill_(value)",
)
def _fill_from_tensor(call: OperationCall) -> OpCost:
    tensor, value = call.inputs[:2]
    # A single element of the same type needs no kernel.
    if tensor.numel() == 1 and tensor.dtype == value.dtype and not call.is_on_host(value):
        return OpCost(copies=(("d2d", tensor.nbytes),))
    return OpCost(kernels_over(tensor))


@CostRule(
    id="concatenate",
    ops=("aten.cat", "aten.stack"),
    source="ATen/native/cuda/Shape.cu: a kernel for each 128 inputs; only the result is allocated",
    example="torch.cat([x, x])",
)
def _concatenate(call: OperationCall) -> OpCost:
    """A kernel for each batch of inputs, or else each input on its own, as bytes or by a kernel."""
    # ``stack`` arrives here whole: it concatenates views, which cost nothing.
    result, inputs = call.outputs[0], list(tensors_in(call.argument("tensors")))
    are_dense = all(tensor.is_contiguous() for tensor in inputs)
    are_alike = all(tensor.dtype == result.dtype for tensor in inputs)
    fits = result.dim() <= CAT_DIMENSIONS and result.numel() < LARGEST_OFFSET
    if len(inputs) > 1 and are_alike and fits:
        batch = INPUTS_PER_CAT if are_dense else INPUTS_PER_CAT // 2
        # Batches of empty inputs are skipped only before the first that has elements.
        first = next((place for place, tensor in enumerate(inputs) if tensor.numel()), None)
        return OpCost(0 if first is None else -(-len(inputs) // batch) - first // batch)
    # With nothing but single rows outside the dimension, its parts follow each other in memory.
    dim = call.argument("dim", 0) % max(result.dim(), 1)
    are_dense &= math.prod(result.shape[:dim]) == 1 or len(inputs) == 1
    # An input that goes to one run of memory, in its own type, is a copy of bytes.
    copied = [each for each in inputs if are_dense and each.dtype == result.dtype]
    rest = [each for each in inputs if not are_dense or each.dtype != result.dtype]
    kernels = sum(elementwise(each.numel(), result.element_size()) for each in rest)
    return OpCost(kernels, copies=tuple(("d2d", each.nbytes) for each in copied if each.numel()))


CostRule(
    id="clone",
    ops=("aten.clone", "aten.contiguous"),
    source="ATen/native/cuda/Copy.cu: bytes where both are dense alike, else one kernel",
    example="x.clone()",
)(lambda call: copied_within(call.outputs[0], call.inputs[0]))

CostRule(
    id="look-otherwise",
    ops=tuple(f"aten.{name}" for name in operations("free")),
    source="ATen/native/TensorShape.cpp: only sizes and strides change",
    example="x.unsqueeze_(0)",
)(FREE)

CostRule(
    id="gradient-of-view",
    ops=tuple(f"aten.{name}_backward" for name in VIEWS if name != "as_strided"),
    source="ATen/native/TensorShape.cpp: zeros, then a copy into the viewed part",
    example="torch.ops.aten.select_backward(y[0], [3], 0, 1)",
)(lambda call: OpCost(kernels_over(call.outputs[0])) + copied_within(_part(call), call.args[0]))

CostRule(
    id="write-into-view",
    ops=tuple(f"aten.{name}_scatter" for name in VIEWS),
    source="ATen/native/TensorShape.cpp: a clone, then a copy into the viewed part",
    example="x.slice_scatter(y, 0, 0, 3)",
)(lambda call: copied_within(call.outputs[0], call.args[0]) + copied_within(_part(call), call.args[1]))

CostRule(
    id="rearrange",
    ops=tuple(f"aten.{name}" for name in REARRANGED),
    source="ATen/native/PixelShuffle.cpp: a permuted view, made contiguous by one kernel",
    example="torch.pixel_shuffle(torch.rand(1, 4, 2, 2, device='cuda'), 2)",
)(one_kernel)

# Once is a copy of bytes, if it lies dense.
CostRule(
    id="repeat",
    ops=("aten.repeat",),
    source="ATen/native/TensorShape.cpp: one copy from a broadcast view",
    example="x.repeat(2)",
)(
    lambda call: (
        copied_within(call.outputs[0], call.args[0])
        if call.args[0].numel() == call.outputs[0].numel()
        else one_kernel(call)
    )
)


ADDRESS_BYTES = 8
_WIDENING = torch.bfloat16, torch.float32
_TABLE = LibraryWork(
    0, dict.fromkeys(("h2d_bytes", "largest_allocation", "peak_bytes", "peak_allocated_bytes"), (0, inf))
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
        _is_dense(out) and (out.dtype == tensors[0].dtype or (tensors[0].dtype, out.dtype) == _WIDENING)
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
    tensor, outputs = call.args[0], call.argument("out")
    if all(_is_dense(each) and each.dtype == tensor.dtype for each in (tensor, *outputs)):
        # Both addresses of each part.
        return _with_table(2 * len(outputs))
    parts = tensor.split_with_sizes(call.argument("split_sizes"), call.argument("dim", 0))
    copied = sum((copied_within(out, part) for out, part in zip(outputs, parts, strict=True)), FREE)
    return replace(copied, library=LibraryWork(0, {}))
