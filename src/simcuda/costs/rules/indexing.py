"""Reading and writing by index, where masks and host indices make the host wait."""

from __future__ import annotations

import torch
from torch import Tensor

from simcuda.costs.call import (
    ANYTHING,
    FREE,
    ONE_KERNEL,
    LibraryWork,
    OpCost,
    OperationCall,
)
from simcuda.costs.copies import contiguous, copied_within
from simcuda.costs.launches import kernels_over
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.rule import COUNT_BYTES, INDEX_BYTES, CostRule
from simcuda.costs.rules.sorting import sort

MASKS = (torch.bool, torch.uint8)
FEW_INDICES = 3072


WRITES = (
    "aten.index_put_",
    "aten.index_put",
    "aten._index_put_impl_",
    "aten._unsafe_index_put",
)


_INTO_COPIES = ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy")


def _indices(call: OperationCall) -> list[Tensor]:
    return [index for index in call.argument("indices") if index is not None]


def find_true(mask: Tensor, found: int, *, into_result: bool = False) -> OpCost:
    """The cost of ``nonzero``: a sum and a selection by CUB, and a wait for how many elements there are.

    Of CUB's kernels the fewest are counted: one that adds up, two that select. The indices are temporaries,
    unless they are found ``into_result``.
    """
    # Places in memory become an index for each dimension.
    unravel = 1 if found and mask.dim() > 1 else 0
    found_bytes = 0 if into_result else found * mask.dim() * INDEX_BYTES
    return contiguous(mask) + OpCost(
        launches=1 + (2 if mask.dim() else 0) + unravel,
        waits=1,
        copies=(("d2h", COUNT_BYTES),),
        temporaries=(COUNT_BYTES, found_bytes),
    )


def _sorts(call: OperationCall) -> bool:
    """Return whether the places to write are sorted: only then do equal ones meet in a known order."""
    return (
        bool(call.argument("accumulate", default=False))
        or torch.are_deterministic_algorithms_enabled()
    )


def _resolve(call: OperationCall) -> OpCost:
    """Copying host indices to the device, and turning masks into indices."""
    cost = FREE
    for index in _indices(call):
        is_mask = index.dtype in MASKS
        found = int(index.count_nonzero()) if is_mask else index.numel()
        size = found * INDEX_BYTES
        if call.is_on_host(index) and is_mask and not _sorts(call):
            # The host finds the indices in pinned memory, from which one copy brings all dimensions.
            nbytes = size * index.dim()
            cost += (
                OpCost(copies=(("h2d", nbytes),), temporaries=(nbytes,))
                if nbytes
                else FREE
            )
        elif call.is_on_host(index):
            # To be sorted, a mask is an index for each of its dimensions before anything is copied.
            copied = (size,) * (index.dim() if is_mask else 1) if size else ()
            cost += OpCost(
                waits=len(copied),
                copies=tuple(("h2d", n) for n in copied),
                temporaries=copied,
            )
        # A mask on the device is an index once its true elements are found.
        elif is_mask:
            cost += find_true(index, found)
    return cost


def _alike(call: OperationCall) -> OpCost:
    """Indices are broadcast, converted to int64, and made contiguous unless all have the same strides."""
    indices = _indices(call)
    if any(index.dtype in MASKS for index in indices):
        return FREE
    shape = torch.broadcast_shapes(*(index.shape for index in indices))  # type: ignore[no-untyped-call]  # not annotated
    cost, converted = FREE, []
    for index in indices:
        spread = index.expand(shape)
        if spread.dtype != torch.int64:
            cost += OpCost(1, temporaries=(spread.numel() * INDEX_BYTES,))
            spread = spread.to(torch.int64)
        converted.append(spread)
    if len({index.stride() for index in converted}) > 1:
        cost += sum(map(contiguous, converted), FREE)
    return cost


def _is_by_mask(call: OperationCall) -> bool:
    """Return True if a mask on the device is searched, which CUB does."""
    return any(
        index.dtype in MASKS and not call.is_on_host(index) for index in _indices(call)
    )


def _writes_one_value_by_mask(call: OperationCall) -> bool:
    value = call.argument("values")
    return (
        value.numel() == 1
        and call.is_on_host(value)
        and len(_indices(call)) == 1
        and _is_by_mask(call)
        and not call.argument("accumulate", default=False)
    )


CostRule(
    id="write-one-value-by-mask",
    ops=WRITES,
    when=_writes_one_value_by_mask,
    source="ATen/native/TensorAdvancedIndexing.cpp: one host value under one mask is a masked_fill",
    example="x[x > 0] = 1.0",
    takes_host_tensors=True,
)(lambda call: OpCost(kernels_over(call.first)))


def _write(call: OperationCall) -> OpCost:
    value = call.argument("values")
    resolved = _resolve(call)
    # The values to write are first copied to the device.
    if call.is_on_host(value):
        resolved += OpCost(
            waits=1, copies=(("h2d", value.nbytes),), temporaries=(value.nbytes,)
        )
    # Masks that are nowhere true name no places.
    found = [
        index.any() if index.dtype in MASKS else index.numel()
        for index in _indices(call)
    ]
    return (
        resolved
        + copied_within(call.result, call.first)
        + OpCost(int(value.numel() > 0 and all(found)))
    )


@CostRule(
    id="accumulate-by-index",
    ops=WRITES,
    when=_sorts,
    source="ATen/native/TensorAdvancedIndexing.cpp, cuda/Indexing.cu: to add, or where algorithms are to be "
    "deterministic, indices are sorted by CUB, then one kernel writes",
    example="x.index_put_((index,), x[index], accumulate=True)",
    approximate=True,
    takes_host_tensors=True,
)
def _accumulate(call: OperationCall) -> OpCost:
    """Indices become places, which are sorted with where they came from; one kernel adds up what meets.

    For each index the remainder, its product with a stride, and the sum with those before; then the division
    by what one place holds, a range, the sort, and the addition.
    """
    indices = _indices(call)
    elements = max((index.numel() for index in indices), default=0)
    return _write(call) + OpCost(
        3 * len(indices) + 2, temporaries=(elements * INDEX_BYTES,) * 6
    )


CostRule(
    id="write-by-mask",
    ops=WRITES,
    when=_is_by_mask,
    source="ATen/native/IndexingUtils.h: masks become indices by nonzero, whose count the host reads; of a "
    "mask on the host it is pinned, and its copy is not waited for",
    example="x[x > 0] = value",
    approximate=True,
    takes_host_tensors=True,
)(_write)


CostRule(
    id="write-by-index",
    ops=WRITES,
    source="ATen/native/IndexingUtils.h: host indices and a host value are copied, each with a wait",
    example="x[index] = y",
    takes_host_tensors=True,
)(lambda call: _write(call) + _alike(call))


CostRule(
    id="read-by-mask",
    ops=("aten.index", "aten._unsafe_index"),
    when=_is_by_mask,
    source="ATen/native/IndexingUtils.h, as for writing",
    example="x[x > 0]",
    approximate=True,
    takes_host_tensors=True,
)(lambda call: _resolve(call) + one_kernel(call))


CostRule(
    id="read-by-index",
    ops=("aten.index", "aten._unsafe_index"),
    source="ATen/native/IndexingUtils.h, as for writing; TensorAdvancedIndexing.cpp: indices of "
    "different strides become contiguous, those of 32 bits int64",
    example="x[index]",
    takes_host_tensors=True,
)(lambda call: _resolve(call) + _alike(call) + one_kernel(call))


@CostRule(
    id="gradient-of-embedding-few",
    ops=("aten.embedding_dense_backward",),
    source="ATen/native/cuda/Embedding.cu: up to 3072 indices, zeros and one kernel",
    example="torch.ops.aten.embedding_dense_backward(torch.ones(3, 2).cuda(), index, 4, -1, False)",
    when=lambda call: (
        bool(call.args[1].numel() <= FEW_INDICES)
        and not call.argument("scale_grad_by_freq", default=False)
    ),
)
@CostRule(
    id="gradient-of-embedding",
    ops=("aten.embedding_dense_backward",),
    source="ATen/native/cuda/EmbeddingBackwardKernel.cu: a sort by CUB, then sums of parts of 10 indices",
    example="torch.ops.aten.embedding_dense_backward(torch.ones(3, 2).cuda(), index, 4, -1, True)",
    approximate=True,
)
def _embedding_backward(call: OperationCall) -> OpCost:
    """Few indices add up in place; many are sorted, and each run of equal ones is added up in parts."""
    gradient, indices = call.args[:2]
    cleared = contiguous(indices) + contiguous(gradient) + one_kernel(call)
    if not indices.numel():
        return cleared
    if indices.numel() <= FEW_INDICES and not call.argument(
        "scale_grad_by_freq", default=False
    ):
        return cleared + ONE_KERNEL
    return cleared + OpCost(6, temporaries=(indices.numel() * INDEX_BYTES,) * 4)


@CostRule(
    id="shorten-rows",
    ops=("aten.embedding_renorm_",),
    source="ATen/native/cuda/Embedding.cu: the number of unique indices stays on the device",
    example="torch.embedding_renorm_(torch.ones(3, 2, device='cuda'), index, 1.0, 2.0)",
    approximate=True,
)
def _shorten(call: OperationCall) -> OpCost:
    """The indices are sorted, and each row that is named is scaled once."""
    indices = call.argument("indices")
    if not indices.numel():
        return FREE
    # CUB selects unique values with two kernels.
    ordered = sort(indices, indices.new_empty(indices.shape), max(indices.dim() - 1, 0))
    return ordered + OpCost(3, temporaries=(indices.nbytes,) * 2)


@CostRule(
    id="fill-selected",
    ops=(
        "aten.masked_fill_",
        "aten.masked_fill",
        "aten.index_fill_",
        "aten.index_fill",
    ),
    source="ATen/native/cuda/Indexing.cu: a device value is read by the host first",
    example="x.masked_fill_(x > 0, value)",
)
def _fill_selected(call: OperationCall) -> OpCost:
    result, value, index = call.result, call.argument("value"), call.argument("index")
    read = FREE
    # The kernel takes a number, not a tensor.
    if isinstance(value, Tensor) and not call.is_on_host(value):
        read = OpCost(waits=1, copies=(("d2h", value.element_size()),))
    selected = (
        kernels_over(result)
        if index is None
        else int(index.numel() > 0 and result.numel() > 0)
    )
    return read + copied_within(call.result, call.first) + OpCost(selected)


CostRule(
    id="nonzero",
    ops=("aten.nonzero", "aten.argwhere"),
    source="ATen/native/cuda/Nonzero.cu: CUB counts, the host reads the count, CUB selects",
    example="(x > 0).nonzero()",
    approximate=True,
)(lambda call: find_true(call.first, len(call.result), into_result=True))


# Kernels and memory of an index_put that sorts.
_IN_ORDER = LibraryWork(0, ANYTHING)


@CostRule(
    id="write-along-dimension",
    ops=tuple(f"aten.{name}{end}" for name in _INTO_COPIES for end in ("", "_")),
    source="ATen/native/TensorAdvancedIndexing.cpp: a copy where not in place, then one kernel; "
    "scatter_reduce copies twice, and counts for a mean; where "
    "deterministic algorithms are asked for, index_put, for which _scatter_via_index_put copies strides of "
    "several dimensions to the device, with a wait",
    example="x.index_add_(0, index, y)",
)
def _write_along(call: OperationCall) -> OpCost:
    """One kernel; in a known order a sort of places, which the host tells of strides."""
    cost = copied_within(call.result, call.first)
    has_index = call.argument("index").numel() > 0
    if call.op.startswith("aten.scatter_reduce"):
        # scatter_reduce_two copies what scatter_impl copies again.
        cost += cost + _reduced(call) if has_index else cost
    cost += OpCost(int(has_index))
    is_of_tensor = (
        call.argument("src") is not None or call.argument("source") is not None
    )
    if not (
        has_index and is_of_tensor and torch.are_deterministic_algorithms_enabled()
    ):
        return cost
    if call.argument("reduce") in (None, "add", "sum", "mean"):
        cost += OpCost(library=_IN_ORDER)
        dimensions = call.first.dim()
        if "scatter" in call.op and dimensions > 1:
            strides = dimensions * INDEX_BYTES
            cost += OpCost(waits=1, copies=(("h2d", strides),), temporaries=(strides,))
    return cost


@CostRule(
    id="reduce-by-index",
    ops=("aten.index_reduce", "aten.index_reduce_"),
    source="ATen/native/cuda/Indexing.cu, index_reduce_func_cuda_impl: one kernel, after index_fill_ where "
    "include_self is False; a mean also counts by "
    "ones and index_add_, masks what was not counted with eq and masked_fill_, and divides",
    example="x.index_reduce_(0, index, y, 'mean')",
)
def _reduce_by_index(call: OperationCall) -> OpCost:
    """Reduce along the index; a mean then divides by how many values each place got."""
    return copied_within(call.result, call.first) + (
        _reduced(call) + ONE_KERNEL if call.argument("index").numel() else FREE
    )


def _reduced(call: OperationCall) -> OpCost:
    """Return the cost of a first value where nothing is kept, and of what a mean counts."""
    result, source = call.result, call.argument("source", call.argument("src"))
    first = OpCost(int(not call.argument("include_self", default=True)))
    if call.argument("reduce") != "mean":
        return first
    # Ones as large as the result and as the source, their sum by index, a mask, its use, and the quotient.
    counted = first + OpCost(6, workspaces=(result.nbytes, source.nbytes))
    mask = (result.numel(),)
    # An H200 held the mask to the end of a scatter.
    return counted + (
        OpCost(workspaces=mask) if "scatter" in call.op else OpCost(passing=mask)
    )


CostRule(
    id="put-where-true",
    ops=("aten.masked_scatter_",),
    source="ATen/native/cuda/IndexKernel.cpp: a prefix sum of the mask, then one kernel",
    example="x.masked_scatter_(x > 0, x)",
    approximate=True,
)(lambda call: OpCost(3, workspaces=(call.first.numel() * INDEX_BYTES,)))
