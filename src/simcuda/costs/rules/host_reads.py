"""Rules for reads by the host: values, answers about whole tensors, sizes that depend on values.

Sorting and searching are done by CUB. The waits and the memory that grows with the input are exact; of CUB's
kernels only the fewest are counted, and its temporaries of lower order are left out. Some results were longer
before they were cut to size: their storage shows by how much.
"""

from __future__ import annotations

import torch

from simcuda.costs.call import FREE, OpCost, OperationCall
from simcuda.costs.copies import contiguous
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduce_all
from simcuda.costs.rules.kernels import number_on_device
from simcuda.costs.rules.rule import COUNT_BYTES, INDEX_BYTES, CostRule
from simcuda.costs.rules.sorting import sort
from simcuda.profile import Profile

TRUTH_BYTES = 1
ANSWER = ("d2h", TRUTH_BYTES)


def read_all(elements: int, profile: Profile) -> OpCost:
    """Whether all, or any, of that many truth values hold, and the wait for the answer."""
    if elements == 1:
        # There is nothing to reduce: the value is copied into the result.
        return OpCost(waits=1, copies=(("d2d", TRUTH_BYTES), ANSWER), temporaries=(TRUTH_BYTES,))
    work = reduce_all(elements, Arithmetic("logical", TRUTH_BYTES), profile)
    launches = work.launches if elements else 1
    return OpCost(launches, waits=1, copies=(ANSWER,), temporaries=(TRUTH_BYTES, *work.workspaces))


def check_error_codes(codes: int, profile: Profile) -> OpCost:
    """Whether any of that many error codes is not 0; a single code is converted by a kernel first."""
    converted = OpCost(launches=1, temporaries=(TRUTH_BYTES,)) if codes == 1 else FREE
    return converted + read_all(codes, profile)


@CostRule(
    id="equal",
    ops=("aten.equal",),
    source="ATen/native/cuda/Equal.cpp: eq, all, and one read, unless both are the same memory",
    example="x.equal(x + 1)",
)
def _equal(call: OperationCall) -> OpCost:
    first, second = call.args[0], call.args[1]
    if first.shape != second.shape or not first.numel():
        return FREE
    # ATen asks for the same memory before it compares anything.
    if first.data_ptr() == second.data_ptr() and first.stride() == second.stride():
        return FREE
    comparison = OpCost(kernels_over(first), temporaries=(first.numel() * TRUTH_BYTES,))
    return comparison + read_all(first.numel(), call.profile)


STATIC_TILE = 512 * 16
FEW_CANDIDATES = 10.0
GROWTH_OF_FEW = 0.145


@CostRule(
    id="unique",
    ops=("aten._unique2", "aten._unique"),
    source="ATen/native/cuda/UniqueCub.cu: sorts, then reads how many there are",
    example="index.unique()",
    approximate=True,
)
@CostRule(
    id="unique-consecutive",
    ops=("aten.unique_consecutive",),
    source="ATen/native/cuda/UniqueCub.cu: reads how many there are",
    example="torch.unique_consecutive(index)",
    when=lambda call: call.argument("dim") is None,
    approximate=True,
)
def _unique(call: OperationCall) -> OpCost:
    """The first of equal values, which are sorted before or follow each other, and their number is read."""
    tensor = call.args[0]
    if not tensor.numel():
        return FREE
    if call.op.startswith("aten.unique_consecutive."):
        kernels, read = 2, INDEX_BYTES
    elif tensor.dtype == torch.bool:
        kernels, read = 2, COUNT_BYTES
    else:
        kernels, read = 3, INDEX_BYTES
    return contiguous(tensor) + OpCost(kernels, 1, (("d2h", read),), (read, tensor.nbytes))


@CostRule(
    id="repeat-interleave",
    ops=("aten.repeat_interleave.Tensor",),
    source="ATen/native/Repeat.h: unless the size is given, the sum and a check of the signs are read",
    example="y.repeat_interleave(index)",
    approximate=True,
)
def _repeats(call: OperationCall) -> OpCost:
    repeats = call.argument("repeats")
    if not repeats.numel():
        return FREE
    # Running sums by CUB, which first runs a kernel to prepare; then the positions are written.
    written = OpCost(2 + kernels_over(call.outputs[0]), temporaries=(INDEX_BYTES * repeats.numel(),))
    if call.argument("output_size") is not None:
        return written
    # Whether all counts are at least 0: compared, all, read, after the total.
    reads = (("d2h", INDEX_BYTES), ("d2h", TRUTH_BYTES))
    return written + OpCost(2, 2, reads, (repeats.numel(), TRUTH_BYTES))


@CostRule(
    id="nonzero-static",
    ops=("aten.nonzero_static",),
    source="ATen/native/cuda/Nonzero.cu: four kernels of its own, and one for several dimensions",
    example="torch.nonzero_static(x, size=2)",
)
def _nonzero_static(call: OperationCall) -> OpCost:
    tensor, result = call.args[0], call.outputs[0]
    if not result.numel():
        return FREE
    # Sums of blocks, sums of those, the indices, what fills the rest, and the indices of several dimensions.
    kernels = 4 + (1 if tensor.dim() > 1 else 0)
    # As many blocks as the device holds at once each walk several tiles.
    resident = call.profile.multiprocessors * (2 if tensor.element_size() == 1 else 1)
    tiles = -(-tensor.numel() // STATIC_TILE)
    rounds = max(1, -(-tiles // resident))
    blocks = -(-tensor.numel() // (STATIC_TILE * rounds))
    return contiguous(tensor) + OpCost(kernels, workspaces=(blocks * COUNT_BYTES, blocks * INDEX_BYTES))


def _are_compared_at_once(call: OperationCall) -> bool:
    """Few candidates are compared with every element; more are sorted with them."""
    # The bound grows slowly with the elements, as in ``isin`` of ATen.
    candidates, elements = call.argument("test_elements"), call.outputs[0].numel()
    if not isinstance(candidates, torch.Tensor) or not elements:
        return True
    return bool(candidates.numel() < int(FEW_CANDIDATES * elements**GROWTH_OF_FEW))


def _made(call: OperationCall) -> OpCost:
    """The tensor on the device that is made of an element that is a number."""
    element = call.args[0]
    return FREE if isinstance(element, torch.Tensor) else number_on_device(element)


@CostRule(
    id="is-one-of-few",
    ops=("aten.isin",),
    source="ATen/native/TensorCompare.cpp: every pair is compared, up to 10 candidates for an element",
    example="torch.isin(x, value)",
    when=_are_compared_at_once,
)
def _compare_with_all(call: OperationCall) -> OpCost:
    candidates, elements = call.argument("test_elements"), call.outputs[0].numel()
    if not isinstance(candidates, torch.Tensor) or not elements:
        return OpCost(1 if elements else 0)
    # Nothing is an element of nothing: the result is filled.
    if not candidates.numel():
        return _made(call) + OpCost(1)
    # Filled, compared, reduced; the answers are copied into the result.
    return _made(call) + OpCost(
        3, copies=(("d2d", elements),), workspaces=(elements * candidates.numel(), elements)
    )


@CostRule(
    id="is-one-of-many",
    ops=("aten.isin",),
    source="ATen/native/TensorCompare.cpp: unique values of both, whose lengths are read; cat, sort, eq, a "
    "copy, index_put_ of a host's truth value, index_copy_, index, a copy",
    example="torch.isin(x, torch.arange(100, device='cuda'))",
    approximate=True,
)
def _compare_by_sorting(call: OperationCall) -> OpCost:
    """Sort the values of both together, and mark equal neighbours.

    The last value has no neighbour: its answer is a truth value of the host, which is copied with a wait. The
    answers to the others are copied beside it, and at the end those that were asked for into the result.
    """
    given, candidates = call.args[0], call.argument("test_elements")
    values = (given if isinstance(given, torch.Tensor) else torch.tensor([given]), candidates)
    cost = _made(call)
    if not call.argument("assume_unique", default=False):
        # Before that both are made unique, and the host reads how many are left.
        values = tuple(each.unique() for each in values)
        cost += OpCost(4, 2, (("d2h", INDEX_BYTES),) * 2)
    joined = torch.cat([each.reshape(-1) for each in values])
    cost += OpCost(
        4,
        1,
        (("d2d", joined.numel() - 1), ("h2d", TRUTH_BYTES), ("d2d", call.outputs[0].numel())),
        temporaries=(joined.nbytes,) * 2,
    )
    return cost + sort(joined, joined, 0)


@CostRule(
    id="bincount",
    ops=("aten.bincount",),
    source="ATen/native/cuda/SummaryOps.cu: the largest value is read, and, but for bytes, the least",
    example="index.bincount()",
    approximate=True,
)
@CostRule(
    id="histc",
    ops=("aten.histc",),
    source="ATen/native/cuda/SummaryOps.cu: without bounds, both are read",
    example="x.histc(4)",
    approximate=True,
)
def _count_values(call: OperationCall) -> OpCost:
    """``bincount``, and ``histc``, which reads the ends of its range unless they are given."""
    tensor = call.args[0]
    # Bytes are never negative, so only their largest is read.
    ends = 1 if tensor.dtype == torch.uint8 else 2
    if not tensor.numel() or (
        call.op.startswith("aten.histc.") and call.argument("min", 0) != call.argument("max", 0)
    ):
        ends = 0
    return OpCost(1 + ends, ends, (("d2h", tensor.element_size()),) * ends)


CostRule(
    id="read-one-value",
    ops=("aten._local_scalar_dense",),
    source="ATen/native/cuda/CUDAScalar.cu: a copy into pinned memory, then a wait for the stream",
    example="x[0].item()",
)(lambda call: OpCost(waits=1, copies=(("d2h", call.args[0].element_size()),)))
