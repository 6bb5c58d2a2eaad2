"""Sorting, ranks and running sums: no waits, but temporaries as large as the input.

Long dimensions are sorted by CUB's radix sort. What it allocates in proportion to the input is charged, the
rest is not, and of its kernels only the fewest.
"""

from __future__ import annotations

import torch

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.copies import same_bytes
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.registry import Rule
from simcuda.cost.rules.viewing import copied as copied_within

LONGEST_SMALL_SORT = 4096
SEGMENTS_SORTED_AT_ONCE = 128
LONG_SEGMENT = 1_000_000
LONGEST_FUSED_MODE = 2048
INDEX_BYTES = 8


def sort(tensor: torch.Tensor, values: torch.Tensor, dim: int) -> Cost:
    """Sort ``tensor`` along ``dim`` into ``values`` and their indices, which are not included."""
    if not tensor.numel():
        return Cost()
    if not tensor.dim():
        return Cost(launches=1, copies=(("d2d", nbytes(tensor)),))
    if tensor.shape[dim] <= LONGEST_SMALL_SORT:
        return _small_sort(tensor, values, dim)
    return _large_sort(tensor, values, dim)


def _small_sort(tensor: torch.Tensor, values: torch.Tensor, dim: int) -> Cost:
    """Indices 0 to n along the dimension, a copy of the values, and one kernel that sorts both in place."""
    length = tensor.shape[dim]
    indices = INDEX_BYTES * tensor.numel()
    as_bytes = ((tensor.numel() == length, indices), (same_bytes(values, tensor), nbytes(tensor)))
    copies = tuple(("d2d", size) for is_memcpy, size in as_bytes if is_memcpy)
    spread = elementwise(tensor.numel(), INDEX_BYTES)
    return Cost(launches=2 + spread * (2 - len(copies)), copies=copies, workspaces=(INDEX_BYTES * length,))


def _large_sort(tensor: torch.Tensor, values: torch.Tensor, dim: int) -> Cost:
    length, size = tensor.shape[dim], tensor.element_size()
    pairs = tensor.numel() * (size + INDEX_BYTES)
    rearranged = not (tensor.stride(dim) == 1 and same_bytes(values, tensor))
    kernels, workspaces = _radix_sort(length, tensor.numel() // length, size)
    if rearranged:
        # A copy with the dimension innermost, sorted values and indices in that order, and two copies back.
        return Cost(launches=3 + kernels, workspaces=(nbytes(tensor), pairs, *workspaces))
    return Cost(launches=kernels, workspaces=workspaces)


def _radix_sort(length: int, segments: int, size: int) -> tuple[int, tuple[int, ...]]:
    elements, pair = length * segments, size + INDEX_BYTES
    if segments == 1 or length >= LONG_SEGMENT:
        return 1 + segments, (INDEX_BYTES * length, pair * length)
    if segments < SEGMENTS_SORTED_AT_ONCE:
        # Sorted by value as a whole, then by segment; segment and position are 32 bits each.
        return 4, (INDEX_BYTES * elements, INDEX_BYTES * elements, size * elements, pair * elements)
    return 2, (INDEX_BYTES * elements, pair * elements)


def _sort(call: Call) -> Cost:
    tensor = call.args[0]
    dim = call.argument("dim", -1) % max(tensor.dim(), 1)
    return sort(tensor, call.outputs[0], dim)


def _is_small(call: Call) -> bool:
    tensor = call.args[0]
    dim = call.argument("dim", -1)
    return not tensor.dim() or bool(tensor.shape[dim] <= LONGEST_SMALL_SORT)


def _median(call: Call) -> Cost:
    """Of all elements: a sort, of which the middle is taken, or a NaN where the last is one."""
    tensor = call.args[0]
    if not tensor.numel():
        return Cost(launches=1)
    flat = tensor.reshape(-1)
    work = sort(flat, flat.contiguous(), 0)
    sorted_pair = (nbytes(tensor), INDEX_BYTES * tensor.numel())
    flattened = () if tensor.is_contiguous() else (nbytes(tensor),)
    after = 2 if call.op.startswith("aten.median") else 7
    return Cost(
        launches=work.launches + len(flattened) + after,
        copies=work.copies,
        temporaries=(*flattened, *sorted_pair, *work.workspaces),
    )


def _rank(call: Call) -> Cost:
    tensor = call.args[0]
    if not tensor.numel():
        return Cost()
    dense = () if tensor.is_contiguous() else (nbytes(tensor),)
    return Cost(launches=1 + len(dense), temporaries=dense)


def _is_one_mode_kernel(call: Call) -> bool:
    tensor = call.args[0]
    return not tensor.dim() or bool(tensor.shape[call.argument("dim", -1)] <= LONGEST_FUSED_MODE)


def _mode(call: Call) -> Cost:
    """One kernel on memory in which the dimension is innermost; of single values a copy, and indices of 0."""
    tensor = call.args[0]
    if not tensor.numel():
        return Cost()
    dim = call.argument("dim", -1)
    if not tensor.dim() or tensor.shape[dim] == 1:
        copied = copied_within(call.outputs[0].reshape(tensor.shape), tensor)
        return Cost(copied.launches + 1, copies=copied.copies)
    moved = tensor.transpose(dim, -1)
    dense = () if moved.is_contiguous() else (nbytes(tensor),)
    return Cost(launches=1 + len(dense), workspaces=dense)


def _topk(call: Call) -> Cost:
    tensor, values = call.args[0], call.outputs[0]
    if not values.numel():
        return Cost()
    is_sorted = call.argument("sorted", default=True) and values.numel() > 1
    dim = call.argument("dim", -1) % max(tensor.dim(), 1)
    if not is_sorted or not values.dim() or values.shape[dim] <= LONGEST_SMALL_SORT:
        return Cost(launches=1 + int(is_sorted))
    work = _large_sort(values, values, dim)
    pair = (nbytes(values), INDEX_BYTES * values.numel())
    gathered = INDEX_BYTES * values.numel()
    copies = (("d2d", gathered), ("d2d", nbytes(values)))
    return Cost(work.launches + 2, copies=copies, workspaces=(*pair, *work.workspaces, gathered))


def _running(call: Call) -> Cost:
    tensor, result = call.args[0], call.outputs[0]
    if not tensor.dim():
        return Cost(copies=(("d2d", nbytes(result)),))
    if not tensor.numel():
        return Cost()
    is_converted = tensor.dtype != result.dtype
    dense = () if tensor.is_contiguous() and not is_converted else (nbytes(result),)
    return Cost(launches=len(dense) + (2 if _is_one_row(call) else 1), temporaries=dense)


def _is_one_row(call: Call) -> bool:
    tensor = call.args[0]
    return bool(tensor.dim() and tensor.numel() == tensor.shape[call.argument("dim")])


def _running_with_indices(call: Call) -> Cost:
    tensor = call.args[0]
    dense = () if tensor.is_contiguous() else (nbytes(tensor),)
    return Cost(launches=len(dense) + (1 if tensor.numel() else 0), temporaries=dense)


TOPIC = (
    Rule(
        id="sort-short",
        ops=("aten.sort", "aten.argsort"),
        counts=_sort,
        source="ATen/native/cuda/Sort.cpp: up to 4096 along the dimension, indices, a copy, a sort in place",
        example="torch.ones(3, device='cuda').sort()",
        when=_is_small,
    ),
    Rule(
        id="sort-long",
        ops=("aten.sort", "aten.argsort"),
        counts=_sort,
        source="ATen/native/cuda/SortStable.cu: radix sort of pairs, which needs room for all of them again",
        example="torch.ones(5000, device='cuda').sort()",
        approximate=True,
    ),
    Rule(
        id="median-of-all",
        ops=("aten.median.default", "aten.nanmedian.default"),
        counts=_median,
        source="ATen/native/cuda/Sorting.cpp: sorts everything",
        example="torch.ones(3, device='cuda').median()",
        approximate=True,
    ),
    Rule(
        id="rank-along-dimension",
        ops=("aten.median.dim", "aten.nanmedian.dim", "aten.kthvalue"),
        counts=_rank,
        source="ATen/native/cuda/Sorting.cpp: one kernel that selects by digits, on contiguous memory",
        example="torch.ones(3, device='cuda').kthvalue(2)",
    ),
    Rule(
        id="most-frequent",
        ops=("aten.mode",),
        counts=_mode,
        source="ATen/native/cuda/TensorModeKernel.cpp: one kernel for up to 2048 values; more are sorted and "
        "searched by thrust, which waits after each step",
        example="x.mode()",
        when=_is_one_mode_kernel,
    ),
    Rule(
        id="topk",
        ops=("aten.topk",),
        counts=_topk,
        source="ATen/native/cuda/TensorTopK.cpp: selects, at least one kernel, then sorts what it selected",
        example="torch.ones(3, device='cuda').topk(2)",
        approximate=True,
    ),
    Rule(
        id="running-sum-of-one-row",
        ops=("aten.cumsum", "aten.cumprod", "aten.logcumsumexp"),
        counts=_running,
        source="ATen/native/cuda/ScanUtils.cuh: CUB's scan, which prepares by a kernel of its own",
        example="torch.ones(3, device='cuda').cumsum(0)",
        when=_is_one_row,
        approximate=True,
    ),
    Rule(
        id="running-sum",
        ops=("aten.cumsum", "aten.cumprod", "aten.logcumsumexp"),
        counts=_running,
        source="ATen/native/cuda/ScanUtils.cuh: one kernel on contiguous memory of the result's type",
        example="torch.ones(3, 4, device='cuda').cumsum(0)",
    ),
    Rule(
        id="running-extremum",
        ops=("aten.cummax", "aten.cummin", "aten._cummax_helper", "aten._cummin_helper"),
        counts=_running_with_indices,
        source="ATen/native/cuda/ScanUtils.cuh: one kernel on contiguous memory",
        example="torch.ones(3, device='cuda').cummax(0)",
    ),
)
