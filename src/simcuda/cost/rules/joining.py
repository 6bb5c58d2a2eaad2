"""Joining tensors."""

from __future__ import annotations

import math
from typing import Any

import torch

from simcuda.cost.call import Call, Cost, nbytes, tensors_in
from simcuda.cost.launches import concatenation, copied_as_bytes
from simcuda.cost.rules.registry import Rule


def _join(call: Call) -> Cost:
    result = call.outputs[0]
    inputs = list(tensors_in(call.argument("tensors")))
    elements = [tensor.numel() for tensor in inputs]
    layout: dict[str, Any] = {
        "dimensions": result.dim(),
        "outermost": _is_outermost(call, result),
        "contiguous": all(tensor.is_contiguous() for tensor in inputs),
        "converted": [place for place, tensor in enumerate(inputs) if tensor.dtype != result.dtype],
    }
    return Cost(
        launches=concatenation(elements, result.element_size(), **layout),
        copies=tuple(("d2d", nbytes(inputs[place])) for place in copied_as_bytes(elements, **layout)),
    )


def _is_outermost(call: Call, result: torch.Tensor) -> bool:
    dim = call.argument("dim", 0) % max(result.dim(), 1)
    return math.prod(result.shape[:dim]) == 1


TOPIC = (
    Rule(
        id="concatenate",
        ops=("aten.cat", "aten.stack"),
        counts=_join,
        source="ATen/native/cuda/Shape.cu: batches of 128 inputs a kernel, the result the only allocation",
        example="torch.cat([x, x])",
    ),
)
