"""Results whose size depends on values, so that the host must read before it goes on."""

from __future__ import annotations

import torch

from simcuda.call import Call, Cost
from simcuda.rules.registry import Rule

INDEX_BYTES = 8


def _read(times: int, nbytes: int = INDEX_BYTES) -> tuple[tuple[str, int], ...]:
    return (("d2h", nbytes),) * times


def _unique(call: Call) -> Cost:
    tensor = call.args[0]
    size = tensor.numel() * tensor.element_size()
    return Cost(launches=4, waits=1, copies=_read(1), temporaries=(size, size))


def _bincount(call: Call) -> Cost:
    tensor = call.args[0]
    times = 1 if tensor.dtype == torch.uint8 else 2
    return Cost(launches=times + 2, waits=times, copies=_read(times, tensor.element_size()))


def _histogram(call: Call) -> Cost:
    least, most = call.argument("min", 0), call.argument("max", 0)
    times = 2 if least == most else 0
    return Cost(launches=times + 2, waits=times, copies=_read(times, call.args[0].element_size()))


def _repeats(call: Call) -> Cost:
    repeats = call.argument("repeats")
    times = 0 if call.argument("output_size") is not None else 2
    size = repeats.numel() * INDEX_BYTES
    return Cost(launches=3, waits=times, copies=_read(times), temporaries=(size,))


def _equal(call: Call) -> Cost:
    first, second = call.args[0], call.args[1]
    if first.shape != second.shape or not first.numel() or first.data_ptr() == second.data_ptr():
        return Cost()
    return Cost(launches=2, waits=1, copies=_read(1, 1), temporaries=(first.numel(), 1))


def _allclose(call: Call) -> Cost:
    return Cost(launches=2, waits=1, copies=_read(1, 1), temporaries=(call.args[0].numel(), 1))


def _normal(call: Call) -> Cost:
    deviations = call.argument("std")
    if not isinstance(deviations, torch.Tensor):
        return Cost(launches=1)
    return Cost(launches=4, waits=1, copies=_read(1, 1), temporaries=(deviations.element_size(), 1))


def _range_between_tensors(call: Call) -> Cost:
    ends = [end for end in call.args[:2] if isinstance(end, torch.Tensor) and not call.is_on_host(end)]
    copies = tuple(("d2h", end.element_size()) for end in ends)
    return Cost(launches=1, waits=len(ends), copies=copies)


def _check(call: Call) -> Cost:
    codes = call.argument("info")
    return Cost(launches=1, waits=1, copies=_read(1, 1), temporaries=(codes.element_size(),))


_TENSOR_ENDS = ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")

TOPIC = (
    Rule(
        id="unique",
        ops=("aten._unique2", "aten._unique", "aten.unique_consecutive"),
        counts=_unique,
        source="ATen/native/cuda/UniqueCub.cu: the host reads how many there are",
        example="index.unique()",
        approximate=True,
    ),
    Rule(
        id="bincount",
        ops=("aten.bincount",),
        counts=_bincount,
        source="ATen/native/cuda/SummaryOps.cu: least and largest are read; of bytes the largest",
        example="index.bincount()",
        approximate=True,
    ),
    Rule(
        id="histc",
        ops=("aten.histc",),
        counts=_histogram,
        source="ATen/native/cuda/SummaryOps.cu: without bounds, both are read",
        example="x.histc(4)",
        approximate=True,
    ),
    Rule(
        id="repeat-interleave",
        ops=("aten.repeat_interleave.Tensor",),
        counts=_repeats,
        source="ATen/native/Repeat.h: a check of the signs and the sum are read, unless the size is given",
        example="y.repeat_interleave(index)",
        approximate=True,
    ),
    Rule(
        id="equal",
        ops=("aten.equal",),
        counts=_equal,
        source="ATen/native/cuda/Equal.cpp: eq, all, and one read",
        example="x.equal(x + 1)",
    ),
    Rule(
        id="allclose",
        ops=("aten.allclose",),
        counts=_allclose,
        source="ATen/native/TensorCompare.cpp: isclose, all, and one read",
        example="x.allclose(x + 1)",
        approximate=True,
    ),
    Rule(
        id="normal-with-deviations",
        ops=("aten.normal.Tensor_Tensor", "aten.normal.float_Tensor", "aten.normal.Tensor_float"),
        counts=_normal,
        source="ATen/native/DistributionTemplates.h: a tensor of deviations is checked by one read",
        example="torch.normal(0.0, x.abs())",
        approximate=True,
    ),
    Rule(
        id="range-between-tensors",
        ops=tuple(f"aten.{name}.{ends}" for name in ("linspace", "logspace") for ends in _TENSOR_ENDS),
        counts=_range_between_tensors,
        source="ATen/native/RangeFactories.cpp: each end that is a tensor is read",
        example="torch.linspace(value, value, 4, device='cuda')",
    ),
    Rule(
        id="check-linear-algebra",
        ops=("aten._linalg_check_errors",),
        counts=_check,
        source="ATen/native/BatchLinearAlgebra.cpp: any over the error codes, and one read",
        example="torch.linalg.cholesky(torch.eye(2, device='cuda'))",
    ),
)
