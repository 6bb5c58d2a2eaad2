"""Fake quantization, by which a model trains for the precision that it will have."""

from __future__ import annotations

import torch

from simcuda.cost.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.cost.copies import contiguous, copied_within
from simcuda.cost.launches import kernels_over
from simcuda.cost.rules.reducing import reduce
from simcuda.cost.rules.rule import CostRule

SWITCH_BYTES = 8


def _by_channel(call: OperationCall) -> OpCost:
    """The mask, then the values; before, the host reads the least and the largest of whole zero points."""
    zero_point, quantized = call.argument("zero_point"), OpCost(2 * kernels_over(call.outputs[0]))
    if zero_point.is_floating_point():
        return quantized
    extremes, read = reduce("aminmax", zero_point, (0,), zero_point, call.profile), zero_point.itemsize
    passing = (read, read, *extremes.workspaces)
    return OpCost(extremes.launches, waits=2, copies=(("d2h", read),) * 2, passing=passing) + quantized


def _observed(call: OperationCall) -> OpCost:
    """The extremes, their moving average, scale and zero point of it, then values and mask in one kernel."""
    tensor = call.args[0]
    extremes = _extremes(call, torch.empty(tensor.shape, dtype=tensor.dtype, device="meta"))
    return contiguous(tensor) + extremes + OpCost(kernels_over(call.outputs[0]))


def _observed_by_channel(call: OperationCall) -> OpCost:
    """The same by rows; the host reads whether to quantize at all."""
    tensor, result = call.args[0], call.outputs[0]
    rows = tensor if tensor.dim() == 2 else tensor.transpose(0, call.argument("ch_axis"))
    # Only its layout counts.
    layout = torch.empty(rows.shape, dtype=tensor.dtype, device="meta").flatten(1)
    observed = contiguous(tensor) + (FREE if rows is tensor else contiguous(rows)) + _extremes(call, layout)
    asked = observed + OpCost(waits=1, copies=(("d2h", SWITCH_BYTES),))
    if call.argument("fake_quant_on").ne(0).item():
        return asked + _by_channel(call)
    return asked + ONE_KERNEL + copied_within(result, tensor)


def _extremes(call: OperationCall, tensor: torch.Tensor) -> OpCost:
    running = call.argument("running_min")
    dimensions = (1,) if call.argument("per_row_fake_quant", default=False) else tuple(range(tensor.dim()))
    extremes = reduce("aminmax", tensor, dimensions, running, call.profile)
    passing = (running.nbytes, running.nbytes, *extremes.workspaces)
    return OpCost(extremes.launches + 2, passing=passing)


_STATE = "torch.tensor([1], device='cuda'), torch.tensor([1], device='cuda'), "
_RANGES = ", ".join(["torch.zeros({0}, device='cuda')"] * 3) + ", torch.zeros({0}, device='cuda').int()"

TOPIC = (
    CostRule(
        id="fake-quantize-by-channel",
        ops=("aten.fake_quantize_per_channel_affine_cachemask",),
        counts=_by_channel,
        source="ATen/native/quantized/FakeQuantPerChannelAffine.cpp: aminmax of whole zero points, both "
        "of which are read; cuda/FakeQuantizeCore.cu: a kernel for the mask and one for the values",
        example="torch.fake_quantize_per_channel_affine(y, y + 1, index.int(), 0, 0, 255)",
    ),
    CostRule(
        id="observe-and-fake-quantize",
        ops=("aten._fused_moving_avg_obs_fq_helper",),
        counts=_observed,
        source="ATen/native/quantized/cuda/FusedObsFakeQuant.cu: aminmax, a kernel for the moving average, "
        "one for scale and zero point; cuda/FakeQuantizeCore.cu: one kernel for values and mask",
        example=f"torch.fused_moving_avg_obs_fake_quant(y, {_STATE}{_RANGES.format(1)}, 0.1, 0, 255, 0)",
        when=lambda call: not call.argument("per_row_fake_quant", default=False),
    ),
    CostRule(
        id="observe-and-fake-quantize-by-channel",
        ops=("aten._fused_moving_avg_obs_fq_helper",),
        counts=_observed_by_channel,
        source="ATen/native/quantized/cuda/FusedObsFakeQuant.cu: as by tensor, then a read of the switch and "
        "fake_quantize_per_channel_affine_cachemask; a first call also fills the ranges",
        example=f"torch.fused_moving_avg_obs_fake_quant(y[:, None], {_STATE}{_RANGES.format(3)}, 0.1, 0, 255"
        ", 0, True)",
        approximate=True,
    ),
)
