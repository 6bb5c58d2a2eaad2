"""Random numbers that depend on other tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from simcuda.costs.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduce_all
from simcuda.costs.rules.reducing import reduce
from simcuda.costs.rules.rule import HALVES, INDEX_BYTES, CostRule

_WITH_TENSORS = (
    "aten.normal.Tensor_Tensor*",
    "aten.normal.float_Tensor*",
    "aten.normal.Tensor_float*",
)


def _normal(call: OperationCall, check: OpCost) -> OpCost:
    """Draw, multiply and add; the least deviation is found first, and ``check`` compares it with 0."""
    result, mean, deviations = call.result, call.argument("mean"), call.argument("std")
    if not isinstance(deviations, Tensor):
        # Drawn with the deviation, the mean added; a tensor is made for its shape alone.
        return OpCost(2 * kernels_over(result), workspaces=(result.nbytes,))
    # A mean that is a number becomes a tensor first.
    mean_bytes = () if isinstance(mean, Tensor) else (result.element_size(),)
    drawn = OpCost(3 * kernels_over(result) + len(mean_bytes), workspaces=mean_bytes)
    if not deviations.numel():
        return drawn
    # In the precision of the type.
    how = Arithmetic("extremum", deviations.element_size(), deviations.dtype in HALVES)
    least = reduce_all(deviations.numel(), how, call.profile)
    check += OpCost(
        least.launches + 1, passing=(deviations.element_size(), 1, *least.workspaces)
    )
    # The function checks the deviations, then calls the one with a result given, which does so again.
    return check + drawn if call.op.endswith("_out") else check + check + drawn


CostRule(
    id="normal-with-tensors",
    ops=_WITH_TENSORS,
    source="ATen/native/DistributionTemplates.h: the least deviation is compared with 0 by _assert_async",
    example="torch.normal(0.0, x.abs())",
    since="2.14",
)(lambda call: _normal(call, ONE_KERNEL))

CostRule(
    id="normal-with-deviations-read",
    ops=_WITH_TENSORS,
    source="ATen/native/DistributionTemplates.h: the least deviation is read at each check",
    example="torch.normal(0.0, x.abs())",
    until="2.14",
)(lambda call: _normal(call, OpCost(waits=1, copies=(("d2h", 1),))))


@CostRule(
    id="draw-shares",
    ops=("aten._sample_dirichlet",),
    source="ATen/native/cuda/Distributions.cpp: launch_gamma_kernel, ret.sum, launch_dirichlet_kernel",
    example="torch._sample_dirichlet(x)",
)
def _shares(call: OperationCall) -> OpCost:
    """Drawn, added up along the last dimension, and divided by that."""
    result = call.result
    total = torch.empty((*result.shape[:-1], 1), dtype=result.dtype, device="meta")
    last = (result.dim() - 1,)
    return OpCost(2 * kernels_over(result), temporaries=(total.nbytes,)) + reduce(
        "sum", result, last, total, call.profile
    )


@CostRule(
    id="permutation",
    ops=("aten.randperm",),
    source="ATen/native/cuda/Randperm.cu: sorts random keys by CUB, without a wait",
    example="torch.randperm(8, device='cuda')",
    approximate=True,
)
def _permutation(call: OperationCall) -> OpCost:
    """Random keys are sorted with the numbers; those alike are shuffled."""
    return OpCost(4, workspaces=(INDEX_BYTES * call.result.numel(),) * 4)


@CostRule(
    id="weighted-sample",
    ops=("aten.multinomial",),
    source="ATen/native/Distributions.cpp: _assert_async checks the weights (pytorch#134818)",
    example="torch.multinomial(torch.ones(3, device='cuda'), 1)",
    approximate=True,
)
def _weighted(call: OperationCall) -> OpCost:
    """Weights are checked by two assertions on the device, then divided by random numbers and ranked."""
    weights = call.first
    if not call.result.numel():
        return FREE
    if call.argument("num_samples") > 1 and call.argument("replacement", default=False):
        # Copied twice, each row normalised and summed up, then every sample searched by one kernel.
        size = weights.nbytes
        return OpCost(3, copies=(("d2d", size),) * 2, temporaries=(size,) * 3)
    return OpCost(10 + 2 * kernels_over(weights), workspaces=(weights.nbytes,))
