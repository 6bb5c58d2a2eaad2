"""Questions about floating-point values that ATen answers by several operations."""

from __future__ import annotations

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.registry import Rule


def _isinf(call: Call) -> Cost:
    (tensor,) = call.inputs
    kernels = elementwise(tensor.numel(), tensor.element_size())
    if not tensor.is_floating_point():
        return Cost(launches=kernels)
    return Cost(launches=2 * kernels, temporaries=(nbytes(tensor),))


TOPIC = (
    Rule(
        id="isinf",
        ops=("aten.isinf",),
        counts=_isinf,
        source="ATen/native/TensorCompare.cpp: abs, then eq; a fill for integers",
        example="torch.isinf(x)",
        when=lambda call: not call.inputs[0].is_complex(),
    ),
)
