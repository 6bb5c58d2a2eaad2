"""Making tensors."""

from __future__ import annotations

from simcuda.call import FREE, Call, Cost
from simcuda.launches import elementwise
from simcuda.rules.registry import Rule


def _fill(call: Call) -> Cost:
    result = call.results()[0]
    return Cost(launches=elementwise(result.numel(), result.element_size()))


_UNFILLED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
_FILLED = (
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"),
    *("zero_", "scalar_tensor", "arange", "linspace", "logspace"),
    *(
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "randint",
        "randint_like",
        "uniform_",
        "normal_",
        "random_",
    ),
    *("bernoulli_", "bernoulli", "exponential_", "cauchy_", "geometric_", "log_normal_"),
)

TOPIC = (
    Rule(
        id="make-unfilled",
        ops=tuple(f"aten.{name}" for name in (*_UNFILLED, "resize_", "set_")),
        counts=FREE,
        source="ATen/native/cuda/TensorFactories.cu: an allocation only",
        example="torch.empty(4, device='cuda')",
    ),
    Rule(
        id="make-filled",
        ops=tuple(f"aten.{name}" for name in _FILLED),
        counts=_fill,
        source="ATen/native/TensorFactories.cpp: empty, then one kernel that fills",
        example="torch.zeros(4, device='cuda')",
    ),
)
