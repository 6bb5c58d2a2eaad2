"""Copies within a device; those between devices are in cost/copies.py."""

from __future__ import annotations

from simcuda.cost import launches
from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.copies import same_bytes
from simcuda.cost.rules.registry import Rule


def _clone(call: Call) -> Cost:
    source, result = call.inputs[0], call.outputs[0]
    if same_bytes(result, source):
        return Cost(copies=(("d2d", nbytes(result)),) if result.numel() else ())
    return Cost(launches=launches.copy(result.numel(), result.element_size(), as_bytes=False))


def _fill_from_tensor(call: Call) -> Cost:
    tensor, value = call.inputs[:2]
    if call.is_on_host(value):
        return Cost(launches=launches.elementwise(tensor.numel(), tensor.element_size()))
    alike = tensor.numel() == 1 and tensor.dtype == value.dtype
    if alike:
        return Cost(copies=(("d2d", nbytes(tensor)),))
    return Cost(launches=launches.elementwise(tensor.numel(), tensor.element_size()))


TOPIC = (
    Rule(
        id="clone",
        ops=("aten.clone", "aten.contiguous"),
        counts=_clone,
        source="ATen/native/cuda/Copy.cu: bytes where both are dense alike, else one kernel",
        example="x.clone()",
    ),
    Rule(
        id="fill-with-tensor",
        ops=("aten.fill_.Tensor", "aten.fill.Tensor"),
        counts=_fill_from_tensor,
        source="ATen/native/Fill.cpp: a device value is copied on the device, a host value is an argument",
        example="x.fill_(value)",
    ),
)
