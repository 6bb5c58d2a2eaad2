"""Operators of torchvision, by the names that it registers: read from its source, not needed to count."""

from __future__ import annotations

import torch

from simcuda.costs.call import FREE, OpCost, OperationCall
from simcuda.costs.copies import contiguous
from simcuda.costs.launches import kernels_over
from simcuda.costs.rules.indexing import find_true
from simcuda.costs.rules.rule import INDEX_BYTES, CostRule
from simcuda.costs.rules.sorting import sort

BOXES_OF_A_MASK = 64


@CostRule(
    id="suppress-boxes",
    ops=("torchvision.nms",),
    source="torchvision/csrc/ops/cuda/nms_kernel.cu, since 0.21: a sort, index_select, two kernels, and "
    "masked_select, whose count the host reads",
    example="torch.ops.torchvision.nms(torch.rand(3, 4, device='cuda'), y, 0.5)",
    approximate=True,
)
def _suppress(call: OperationCall) -> OpCost:
    boxes, scores = call.args[:2]
    if not boxes.numel():
        return FREE
    count, kept = len(boxes), call.result.numel()
    # Boxes selected, compared with all others by bits; zeros, filled; and the order selected by that.
    mask = INDEX_BYTES * count * -(-count // BOXES_OF_A_MASK)
    own = OpCost(4 + int(kept > 0), temporaries=(boxes.nbytes, mask))
    keep = torch.empty(count, dtype=torch.bool, device="meta")
    return own + sort(scores, scores.new_empty(scores.shape), 0) + find_true(keep, kept)


@CostRule(
    id="align-regions",
    ops=("torchvision.roi_align", "torchvision._roi_align_backward"),
    source="torchvision/csrc/ops/cuda/roi_align_kernel.cu: zeros, contiguous(), one kernel",
    example="torch.ops.torchvision.roi_align(torch.rand(1, 2, 8, 8, device='cuda'), "
    "torch.rand(3, 5, device='cuda'), 1.0, 2, 2, -1, False)",
)
def _align(call: OperationCall) -> OpCost:
    """Zeros, and one kernel that reads contiguous memory; the gradient is read by its strides."""
    is_gradient = "backward" in call.op
    result = call.result
    zeros = OpCost(kernels_over(result))
    if not (call.first if is_gradient else result).numel():
        return zeros
    read = call.args[1:2] if is_gradient else call.args[:2]
    return sum(map(contiguous, read), zeros) + OpCost(1)
