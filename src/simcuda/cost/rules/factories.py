"""Making tensors."""

from __future__ import annotations

import torch

from simcuda.cost.call import FREE, Call, Cost
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.registry import Rule


def _fill(call: Call) -> Cost:
    result = call.outputs[0]
    return Cost(launches=elementwise(result.numel(), result.element_size()))


def _range_between_tensors(call: Call) -> Cost:
    ends = [end for end in call.args[:2] if isinstance(end, torch.Tensor) and not call.is_on_host(end)]
    copies = tuple(("d2h", end.element_size()) for end in ends)
    return Cost(launches=_fill(call).launches, waits=len(ends), copies=copies)


_UNFILLED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
_FILLED = (
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"),
    *("zero_", "scalar_tensor", "arange", "linspace.default", "linspace.out"),
    *("logspace.default", "logspace.out"),
    *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "uniform_", "normal_"),
    "random_",
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
    Rule(
        id="range-between-tensors",
        ops=("aten.linspace.*Tensor*", "aten.logspace.*Tensor*"),
        counts=_range_between_tensors,
        source="ATen/native/RangeFactories.cpp: each end that is a tensor is read",
        example="torch.linspace(value, value, 4, device='cuda')",
    ),
)
