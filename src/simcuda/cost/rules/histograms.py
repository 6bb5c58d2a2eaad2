"""How often values occur, for which the host reads how far they reach."""

from __future__ import annotations

from dataclasses import replace

import torch

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.reductions import arithmetic, reduce_all
from simcuda.cost.rules.registry import Rule

THREADS = 512
FEW_BINS = 100
MANY_BINS = 1000


def _bincount(call: Call) -> Cost:
    tensor, weights = call.args[0], call.argument("weights")
    if not tensor.numel():
        return Cost(launches=1 if call.outputs[0].numel() else 0)
    # Bytes are never negative, so only their largest is read.
    ends = 1 if tensor.dtype == torch.uint8 else 2
    converted = weights is not None and weights.dtype not in (torch.float32, torch.float64)
    widened = (8 * weights.numel(),) if converted else ()
    found = _read_ends(call, tensor, ends)
    kernels, partial = _histogram(call, tensor)
    return Cost(
        launches=found.launches + len(widened) + kernels,
        waits=ends,
        copies=found.copies,
        passing=found.passing,
        temporaries=widened,
        workspaces=partial,
    )


def _histc(call: Call) -> Cost:
    tensor = call.args[0]
    kernels, partial = _histogram(call, tensor)
    if not tensor.numel() or call.argument("min", 0) != call.argument("max", 0):
        return Cost(kernels, workspaces=partial)
    found = _read_ends(call, tensor, 2)
    return replace(found, launches=found.launches + kernels, workspaces=partial)


def _read_ends(call: Call, tensor: torch.Tensor, ends: int) -> Cost:
    size = tensor.element_size()
    work = reduce_all(tensor.numel(), arithmetic("extremum", size), call.profile)
    reads = (("d2h", size),) * ends
    return Cost(ends * work.launches, ends, 0, reads, passing=(size, *work.workspaces) * ends)


def _histogram(call: Call, tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    """Kernels and the histograms of each block, where there are too many bins to keep them on chip."""
    result = call.outputs[0]
    if not tensor.numel():
        return 1, ()
    if not FEW_BINS <= result.numel() < MANY_BINS:
        return 2, ()
    blocks = -(-tensor.numel() // THREADS)
    return 3, (blocks * nbytes(result),)


TOPIC = (
    Rule(
        id="bincount",
        ops=("aten.bincount",),
        counts=_bincount,
        source="ATen/native/cuda/SummaryOps.cu: the least value, except of bytes, and the largest are read",
        example="index.bincount()",
        approximate=True,
    ),
    Rule(
        id="histc",
        ops=("aten.histc",),
        counts=_histc,
        source="ATen/native/cuda/SummaryOps.cu: without bounds, both are read",
        example="x.histc(4)",
        approximate=True,
    ),
)
