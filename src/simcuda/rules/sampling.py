"""Random numbers that depend on other tensors."""

from __future__ import annotations

import math

import torch

from simcuda.call import Call, Cost, nbytes
from simcuda.launches import elementwise
from simcuda.reductions import arithmetic, reduce_all
from simcuda.rules.registry import Rule

INDEX_BYTES = 8


def _normal(call: Call) -> Cost:
    result, mean, deviations = call.results()[0], call.argument("mean"), call.argument("std")
    if not isinstance(deviations, torch.Tensor):
        # Drawn with the deviation, the mean added; a tensor is made for its shape alone.
        return Cost(2 * _kernels(result), workspaces=(nbytes(result),))
    # Drawn, multiplied, added; a mean that is a number becomes a tensor first.
    drawing = 3 * _kernels(result)
    mean_bytes = () if isinstance(mean, torch.Tensor) else (result.element_size(),)
    if not deviations.numel():
        return Cost(drawing + len(mean_bytes), workspaces=mean_bytes)
    # The function checks the deviations, then calls the one with a result given, which does so again.
    checks = 1 if call.op.endswith("_out") else 2
    half = deviations.dtype in (torch.float16, torch.bfloat16)
    how = arithmetic("extremum", deviations.element_size(), half=half)
    least = reduce_all(deviations.numel(), how, call.profile)
    return Cost(
        launches=checks * (least.launches + 1) + drawing + len(mean_bytes),
        waits=checks,
        copies=(("d2h", 1),) * checks,
        passing=(deviations.element_size(), 1, *least.workspaces) * checks,
        workspaces=mean_bytes,
    )


def _kernels(tensor: torch.Tensor) -> int:
    return elementwise(tensor.numel(), tensor.element_size())


def _permutation(call: Call) -> Cost:
    """Random keys, long enough that few are alike, are sorted with the numbers; those alike are shuffled."""
    length = call.results()[0].numel()
    if not length:
        return Cost()
    bits = math.ceil(math.log2(length - (6 * length**2 + 1) / (12 * math.log(0.9))))
    key = 4 if bits <= 32 else INDEX_BYTES
    pairs = length * (key + INDEX_BYTES)
    return Cost(launches=4, workspaces=(key * length, key * length, INDEX_BYTES * length, pairs))


TOPIC = (
    Rule(
        id="normal-with-tensors",
        ops=("aten.normal.Tensor_Tensor*", "aten.normal.float_Tensor*", "aten.normal.Tensor_float*"),
        counts=_normal,
        source="ATen/native/DistributionTemplates.h: the least deviation is read at each check",
        example="torch.normal(0.0, x.abs())",
    ),
    Rule(
        id="permutation",
        ops=("aten.randperm",),
        counts=_permutation,
        source="ATen/native/cuda/Randperm.cu: sorts random keys by CUB, without a wait",
        example="torch.randperm(8, device='cuda')",
        approximate=True,
    ),
)
