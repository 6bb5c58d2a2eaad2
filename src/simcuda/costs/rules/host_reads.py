"""Rules for reads by the host: values, answers about whole tensors, sizes that depend on values.

Sorting and searching are done by CUB. The waits and the memory that grows with the input are exact; of CUB's
kernels only the fewest are counted, and its temporaries of lower order are left out. Some results were longer
before they were cut to size: their storage shows by how much.
"""

from __future__ import annotations

from math import inf

import torch

from simcuda.costs.call import FREE, MEMORY, LibraryWork, OpCost, OperationCall
from simcuda.costs.copies import contiguous
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduce_all
from simcuda.costs.rules.rule import COUNT_BYTES, INDEX_BYTES, CostRule
from simcuda.profile import Profile

TRUTH_BYTES = 1
ANSWER = ("d2h", TRUTH_BYTES)


def read_all(elements: int, profile: Profile) -> OpCost:
    """Reduce that many truth values, and wait for the answer."""
    if elements == 1:
        # There is nothing to reduce: the value is copied into the result.
        return OpCost(
            waits=1, copies=(("d2d", TRUTH_BYTES), ANSWER), temporaries=(TRUTH_BYTES,)
        )
    work = reduce_all(elements, Arithmetic("logical", TRUTH_BYTES), profile)
    launches = work.launches if elements else 1
    return OpCost(
        launches, waits=1, copies=(ANSWER,), temporaries=(TRUTH_BYTES, *work.workspaces)
    )


def check_error_codes(codes: int, profile: Profile) -> OpCost:
    """Whether any of that many error codes is not 0; a single code is converted by a kernel first."""
    converted = OpCost(launches=1, temporaries=(TRUTH_BYTES,)) if codes == 1 else FREE
    return converted + read_all(codes, profile)


STATIC_TILE = 512 * 16


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
    tensor = call.first
    if not tensor.numel():
        return FREE
    if call.op.startswith("aten.unique_consecutive."):
        kernels, read = 2, INDEX_BYTES
    elif tensor.dtype == torch.bool:
        kernels, read = 2, COUNT_BYTES
    else:
        kernels, read = 3, INDEX_BYTES
    return contiguous(tensor) + OpCost(
        kernels, 1, (("d2h", read),), (read, tensor.nbytes)
    )


# It merges what blocks have sorted by more kernels, the more there is; its workspaces are its own choice.
_BY_THRUST = LibraryWork(
    0,
    dict.fromkeys(("launches", "aten_launches", *MEMORY[1:]), (0, inf))
    | {"d2h_bytes": (0, COUNT_BYTES)},
)


@CostRule(
    id="unique-along-dimension",
    ops=("aten.unique_dim", "aten.unique_dim_consecutive", "aten.unique_consecutive"),
    source="ATen/native/cuda/Unique.cu: sort, unique and, if asked for, adjacent_difference, inclusive_scan "
    "and scatter, by Thrust, which waits for each; index_select. Recorded on an H100",
    example="torch.unique(x.view(4, 2), dim=0)",
    approximate=True,
)
def _unique_along(call: OperationCall) -> OpCost:
    """The places of rows, which are sorted and compared by what the rows hold."""
    tensor, dim = call.first, call.argument("dim")
    rows = tensor.moveaxis(dim, 0)
    if not tensor.numel():
        return FREE
    cost = contiguous(rows) + OpCost(copies=(("d2h", COUNT_BYTES),), library=_BY_THRUST)
    for is_asked, kernels, waits, arrays in (
        # A range; what is unique, by two kernels, and its number, which is read; the selected rows.
        (True, 4, 2, 2),
        (call.op.startswith("aten.unique_dim."), 1, 1, 1),
        # Where rows differ, of which the first does not; sums of that; each row's, brought to its place.
        (call.argument("return_inverse"), 5, 3, 3),
        # A range, its end, and differences.
        (call.argument("return_counts"), 3, 1, 2),
    ):
        if is_asked:
            cost += OpCost(
                kernels, waits, temporaries=(INDEX_BYTES * len(rows),) * arrays
            )
    return cost


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
    written = OpCost(
        2 + kernels_over(call.result), temporaries=(INDEX_BYTES * repeats.numel(),)
    )
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
    tensor, result = call.first, call.result
    if not result.numel():
        return FREE
    # Sums of blocks, sums of those, the indices, what fills the rest, and the indices of several dimensions.
    kernels = 4 + (1 if tensor.dim() > 1 else 0)
    # As many blocks as the device holds at once each walk several tiles.
    resident = call.profile.multiprocessors * (2 if tensor.element_size() == 1 else 1)
    tiles = -(-tensor.numel() // STATIC_TILE)
    rounds = max(1, -(-tiles // resident))
    blocks = -(-tensor.numel() // (STATIC_TILE * rounds))
    return contiguous(tensor) + OpCost(
        kernels, workspaces=(blocks * COUNT_BYTES, blocks * INDEX_BYTES)
    )


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
    tensor = call.first
    # Bytes are never negative, so only their largest is read.
    ends = 1 if tensor.dtype == torch.uint8 else 2
    if not tensor.numel() or (
        call.op.startswith("aten.histc.")
        and call.argument("min", 0) != call.argument("max", 0)
    ):
        ends = 0
    return OpCost(1 + ends, ends, (("d2h", tensor.element_size()),) * ends)


CostRule(
    id="read-one-value",
    ops=("aten._local_scalar_dense",),
    source="ATen/native/cuda/CUDAScalar.cu: a copy into pinned memory, then a wait for the stream",
    example="x[0].item()",
)(lambda call: OpCost(waits=1, copies=(("d2h", call.first.element_size()),)))
