"""Sorting, ranks and running sums: no waits, but temporaries as large as the input.

Long dimensions are sorted by CUB's radix sort. What it allocates in proportion to the input is charged, the
rest is not, and of its kernels only the fewest.
"""

from __future__ import annotations

from torch import Tensor

from simcuda.costs.call import FREE, ONE_KERNEL, OpCost, OperationCall
from simcuda.costs.copies import copied_within, same_bytes
from simcuda.costs.launches import elementwise
from simcuda.costs.rules.rule import INDEX_BYTES, CostRule

LONGEST_SMALL_SORT = 4096
LONGEST_FUSED_MODE = 2048


def sort(tensor: Tensor, values: Tensor, dim: int) -> OpCost:
    """Sort along ``dim``, from 0 on, into ``values`` and their indices, which are not included.

    The layout of ``values`` decides whether they are rearranged.
    """
    if not tensor.numel():
        return FREE
    copied = copied_within(values, tensor)
    if not tensor.dim():
        return copied + ONE_KERNEL
    length = tensor.shape[dim]
    if length > LONGEST_SMALL_SORT:
        return copied + _radix_sort(tensor)
    # Indices 0 to n along the dimension, a second copy, and one kernel that sorts both in place, where there
    # is something to sort (Sort.cpp, sortKeyValueInplace).
    indices = INDEX_BYTES * tensor.numel()
    as_bytes = (
        (tensor.numel() == length, indices),
        (same_bytes(values, tensor), tensor.nbytes),
    )
    copies = tuple(("d2d", size) for is_memcpy, size in as_bytes if is_memcpy)
    spread = elementwise(tensor.numel(), INDEX_BYTES)
    kernels = 1 + int(length > 1) + spread * (2 - len(copies))
    in_place = OpCost(kernels, copies=copies, workspaces=(INDEX_BYTES * length,))
    return copied + in_place


def _radix_sort(tensor: Tensor) -> OpCost:
    """CUB sorts values together with the indices that they came from, and needs room for all pairs again."""
    indices = INDEX_BYTES * tensor.numel()
    return OpCost(2, workspaces=(indices, tensor.nbytes + indices))


@CostRule(
    id="sort-short",
    ops=("aten.sort", "aten.argsort"),
    source="ATen/native/Sorting.cpp: values.copy_(self); cuda/Sort.cpp: up to 4096 along the dimension, "
    "indices, a copy, a sort in place",
    example="torch.ones(3, device='cuda').sort()",
    when=lambda call: _is_short(call, LONGEST_SMALL_SORT),
)
@CostRule(
    id="sort-long",
    ops=("aten.sort", "aten.argsort"),
    source="ATen/native/Sorting.cpp: values.copy_(self); cuda/SortStable.cu: radix sort of pairs, which "
    "needs room for all of them again",
    example="torch.ones(5000, device='cuda').sort()",
    approximate=True,
)
def _sort(call: OperationCall) -> OpCost:
    tensor = call.first
    return sort(tensor, call.result, call.argument("dim", -1) % max(tensor.dim(), 1))


@CostRule(
    id="rank-along-dimension",
    ops=("aten.median.dim", "aten.nanmedian.dim", "aten.kthvalue"),
    source="ATen/native/cuda/Sorting.cpp: one kernel that selects by digits, on contiguous memory",
    example="torch.ones(3, device='cuda').kthvalue(2)",
)
@CostRule(
    id="running-extremum",
    ops=("aten.cummax", "aten.cummin", "aten._cummax_helper", "aten._cummin_helper"),
    source="ATen/native/cuda/ScanUtils.cuh: one kernel on contiguous memory",
    example="torch.ones(3, device='cuda').cummax(0)",
)
def _one_kernel_on_dense(call: OperationCall) -> OpCost:
    tensor = call.first
    dense = () if tensor.is_contiguous() else (tensor.nbytes,)
    return OpCost(len(dense) + int(tensor.numel() > 0), temporaries=dense)


@CostRule(
    id="most-frequent",
    ops=("aten.mode",),
    source="ATen/native/cuda/TensorModeKernel.cpp: one kernel for up to 2048 values; more are sorted and "
    "searched by Thrust, which waits after each step",
    example="x.mode()",
    when=lambda call: _is_short(call, LONGEST_FUSED_MODE),
)
def _mode(call: OperationCall) -> OpCost:
    """One kernel on memory in which the dimension is innermost; of single values a copy, and indices of 0."""
    tensor = call.first
    if not tensor.numel():
        return FREE
    dim = call.argument("dim", -1)
    if not tensor.dim() or tensor.shape[dim] == 1:
        return copied_within(call.result.reshape(tensor.shape), tensor) + OpCost(1)
    # The kernel reads the dimension in one run.
    moved = tensor.transpose(dim, -1)
    dense = () if moved.is_contiguous() else (tensor.nbytes,)
    return OpCost(1 + len(dense), workspaces=dense)


@CostRule(
    id="topk",
    ops=("aten.topk",),
    source="ATen/native/cuda/TensorTopK.cpp: selects, at least one kernel; Sort.cpp: sorts more than one",
    example="torch.ones(3, device='cuda').topk(2)",
    approximate=True,
)
def _topk(call: OperationCall) -> OpCost:
    tensor, values = call.first, call.result
    if not values.numel():
        return FREE
    dim = call.argument("dim", -1) % max(tensor.dim(), 1)
    length = values.shape[dim] if values.dim() else 1
    # One value of each row is in order.
    is_sorted = call.argument("sorted", default=True) and length > 1
    if not is_sorted or length <= LONGEST_SMALL_SORT:
        return OpCost(1 + int(is_sorted))
    # Many selected values are sorted as by ``sort``, and their indices gathered by what that yields.
    copies = (("d2d", INDEX_BYTES * values.numel()), ("d2d", values.nbytes))
    return OpCost(2, copies=copies, temporaries=(values.nbytes,)) + _radix_sort(values)


def _is_one_row(call: OperationCall) -> bool:
    tensor = call.first
    return bool(tensor.dim() and tensor.numel() == tensor.shape[call.argument("dim")])


@CostRule(
    id="running-sum-of-one-row",
    ops=("aten.cumsum", "aten.cumprod", "aten.logcumsumexp"),
    source="ATen/native/cuda/ScanUtils.cuh: CUB's scan, which prepares by a kernel of its own",
    example="torch.ones(3, device='cuda').cumsum(0)",
    when=_is_one_row,
    approximate=True,
)
@CostRule(
    id="running-sum",
    ops=("aten.cumsum", "aten.cumprod", "aten.logcumsumexp"),
    source="ATen/native/cuda/ScanUtils.cuh: one kernel on contiguous memory of the result's type",
    example="torch.ones(3, 4, device='cuda').cumsum(0)",
)
def _running(call: OperationCall) -> OpCost:
    tensor, result = call.first, call.result
    if not tensor.dim():
        return OpCost(copies=(("d2d", result.nbytes),))
    if not tensor.numel():
        return FREE
    # The sum of integers has a wider type than the integers.
    is_dense = tensor.is_contiguous() and tensor.dtype == result.dtype
    dense = () if is_dense else (result.nbytes,)
    return OpCost(len(dense) + (2 if _is_one_row(call) else 1), temporaries=dense)


def _is_short(call: OperationCall, most: int) -> bool:
    """Return whether the dimension of an operation has at most ``most`` elements."""
    tensor = call.first
    return not tensor.dim() or bool(tensor.shape[call.argument("dim", -1)] <= most)
