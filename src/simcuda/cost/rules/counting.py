"""Results as long as the values decide, so that the host must read a length before it goes on.

Sorting and searching are done by CUB. The waits and the memory that grows with the input are exact; of CUB's
kernels only the fewest are counted, and its temporaries of lower order are left out.
"""

from __future__ import annotations

import torch

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.registry import Rule

INDEX_BYTES = 8
COUNT_BYTES = 4
STATIC_TILE = 512 * 16
FEW_CANDIDATES = 10.0
GROWTH_OF_FEW = 0.145


def contiguous(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    """Kernels and temporaries of ``tensor.contiguous()``."""
    if tensor.is_contiguous():
        return 0, ()
    return elementwise(tensor.numel(), tensor.element_size()), (nbytes(tensor),)


def _read(times: int, size: int) -> tuple[tuple[str, int], ...]:
    return (("d2h", size),) * times


def _held(tensor: torch.Tensor) -> int:
    """Bytes its storage holds: some results were longer before they were cut."""
    return tensor.untyped_storage().nbytes()


def _unique(call: Call) -> Cost:
    tensor, values = call.args[0], call.outputs[0]
    if not tensor.numel():
        return Cost()
    inverse = 1 if call.argument("return_inverse", default=False) else 0
    kernels, dense = contiguous(tensor)
    if tensor.dtype == torch.bool:
        # Those that are true are counted; one kernel writes what there is, and how often.
        temporaries = (*dense, COUNT_BYTES, 2 * INDEX_BYTES)
        return Cost(kernels + 2 + inverse, 1, 0, _read(1, COUNT_BYTES), temporaries)
    # Sorted; the first of each; and for the inverse positions, neighbours compared, running sums, a scatter.
    kernels += 1 + 2 + 5 * inverse
    temporaries = (*dense, INDEX_BYTES, *_unique_buffers(tensor, values, inverse=bool(inverse)))
    if call.argument("return_counts", default=False):
        counts = call.outputs[-1]
        temporaries = (*temporaries, INDEX_BYTES * tensor.numel() - _held(counts))
    return Cost(kernels, 1, 0, _read(1, INDEX_BYTES), temporaries)


def _unique_buffers(tensor: torch.Tensor, values: torch.Tensor, *, inverse: bool) -> tuple[int, ...]:
    """The sorted copy, and what else is there at the peak beside the results.

    The values keep room for all elements. With the inverse the peak is while pairs are sorted: beside both
    copies of values and positions, the radix sort takes as much again.
    """
    size = nbytes(tensor)
    if not inverse:
        return size, size - _held(values)
    positions = INDEX_BYTES * tensor.numel()
    return size, size + positions, positions - _held(values)


def _unique_consecutive(call: Call) -> Cost:
    tensor, values = call.args[0], call.outputs[0]
    if not tensor.numel():
        return Cost()
    inverse = call.argument("return_inverse", default=False)
    kernels, dense = contiguous(tensor)
    # The first of each; for the inverse, neighbours compared into 32-bit integers, then running sums.
    compared = (4 * tensor.numel(),) if inverse else ()
    temporaries = (*dense, INDEX_BYTES, nbytes(tensor) - _held(values), *compared)
    return Cost(kernels + 2 + (3 if inverse else 0), 1, 0, _read(1, INDEX_BYTES), temporaries)


def _repeats(call: Call) -> Cost:
    repeats, result = call.argument("repeats"), call.outputs[0]
    if not repeats.numel():
        return Cost()
    sums = INDEX_BYTES * repeats.numel()
    # Running sums by CUB, which prepares by a kernel of its own; then the positions are written.
    kernels = 2 + elementwise(result.numel(), result.element_size())
    if call.argument("output_size") is not None:
        return Cost(kernels, temporaries=(sums,))
    # Whether all counts are at least 0: compared, all, read, after the total.
    copies = (("d2h", INDEX_BYTES), ("d2h", 1))
    return Cost(kernels + 2, 2, 0, copies, (sums, repeats.numel(), 1))


def _nonzero_static(call: Call) -> Cost:
    tensor, result = call.args[0], call.outputs[0]
    if not result.numel():
        return Cost()
    kernels, dense = contiguous(tensor)
    # Sums of blocks, sums of those, the indices, what fills the rest, and the indices of several dimensions.
    kernels += 4 + (1 if tensor.dim() > 1 else 0)
    resident = call.profile.multiprocessors * (2 if tensor.element_size() == 1 else 1)
    tiles = -(-tensor.numel() // STATIC_TILE)
    rounds = max(1, -(-tiles // resident))
    blocks = -(-tensor.numel() // (STATIC_TILE * rounds))
    return Cost(kernels, temporaries=dense, workspaces=(blocks * COUNT_BYTES, blocks * INDEX_BYTES))


def _are_compared_at_once(call: Call) -> bool:
    """Few candidates are compared with every element; more are sorted with them."""
    candidates, elements = call.argument("test_elements"), call.outputs[0].numel()
    if not isinstance(candidates, torch.Tensor) or not elements:
        return True
    return bool(candidates.numel() < int(FEW_CANDIDATES * elements**GROWTH_OF_FEW))


def _compare_with_all(call: Call) -> Cost:
    candidates, result = call.argument("test_elements"), call.outputs[0]
    if not isinstance(candidates, torch.Tensor) or not result.numel():
        return Cost(1 if result.numel() else 0)
    if not candidates.numel():
        return Cost(1)
    pairs = result.numel() * candidates.numel()
    # Filled, compared, reduced; the answers are copied into the result.
    return Cost(3, copies=(("d2d", result.numel()),), workspaces=(pairs, result.numel()))


def _compare_by_sorting(call: Call) -> Cost:
    candidates = call.argument("test_elements")
    size = nbytes(candidates) + call.outputs[0].numel() * candidates.element_size()
    # Joined, sorted, neighbours compared, put back in place.
    kernels, temporaries = 5, (size, size, size // candidates.element_size() * INDEX_BYTES)
    if call.argument("assume_unique", default=False):
        return Cost(kernels, temporaries=temporaries)
    return Cost(kernels + 8 + 3, 2, 0, _read(2, INDEX_BYTES), temporaries)


TOPIC = (
    Rule(
        id="is-one-of-few",
        ops=("aten.isin",),
        counts=_compare_with_all,
        source="ATen/native/TensorCompare.cpp: every pair is compared, up to 10 candidates for an element",
        example="torch.isin(x, value)",
        when=_are_compared_at_once,
    ),
    Rule(
        id="is-one-of-many",
        ops=("aten.isin",),
        counts=_compare_by_sorting,
        source="ATen/native/TensorCompare.cpp: what is unique in both, whose lengths are read, then sorted",
        example="torch.isin(x, torch.arange(100, device='cuda'))",
        approximate=True,
    ),
    Rule(
        id="unique",
        ops=("aten._unique2", "aten._unique"),
        counts=_unique,
        source="ATen/native/cuda/UniqueCub.cu: sorts, then reads how many there are",
        example="index.unique()",
        approximate=True,
    ),
    Rule(
        id="unique-consecutive",
        ops=("aten.unique_consecutive",),
        counts=_unique_consecutive,
        source="ATen/native/cuda/UniqueCub.cu: reads how many there are",
        example="torch.unique_consecutive(index)",
        when=lambda call: call.argument("dim") is None,
        approximate=True,
    ),
    Rule(
        id="repeat-interleave",
        ops=("aten.repeat_interleave.Tensor",),
        counts=_repeats,
        source="ATen/native/Repeat.h: unless the size is given, the sum and a check of the signs are read",
        example="y.repeat_interleave(index)",
        approximate=True,
    ),
    Rule(
        id="nonzero-static",
        ops=("aten.nonzero_static",),
        counts=_nonzero_static,
        source="ATen/native/cuda/Nonzero.cu: four kernels of its own, and one for several dimensions",
        example="torch.nonzero_static(x, size=2)",
    ),
)
