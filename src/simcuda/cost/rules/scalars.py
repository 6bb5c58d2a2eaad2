"""Reading single values on the host."""

from __future__ import annotations

from simcuda.cost.call import Call, Cost
from simcuda.cost.rules.registry import Rule


def _read_one(call: Call) -> Cost:
    return Cost(waits=1, copies=(("d2h", call.args[0].element_size()),))


TOPIC = (
    Rule(
        id="read-one-value",
        ops=("aten._local_scalar_dense",),
        counts=_read_one,
        source="ATen/native/cuda/CUDAScalar.cu: a copy into pinned memory, then a wait for the stream",
        example="x[0].item()",
    ),
)
