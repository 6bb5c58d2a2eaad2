"""Nested and sparse tensors: what CUDA does by code of its own. ``SHARED`` has what is made of others.

The sizes of a nested tensor lie on the host. Kernels that need them get a copy.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

import torch
from torch import Tensor

from simcuda.basis import in_aten, operations
from simcuda.costs.call import (
    ANYTHING,
    FREE,
    MEMORY,
    LibraryWork,
    OpCost,
    OperationCall,
)
from simcuda.costs.copies import contiguous, copied_within
from simcuda.costs.launches import kernels_over
from simcuda.costs.reductions import Arithmetic, reduce_all
from simcuda.costs.rules.kernels import one_kernel
from simcuda.costs.rules.layers import VECTOR, VECTORIZED
from simcuda.costs.rules.rule import COUNT_BYTES, INDEX_BYTES, CostRule
from simcuda.device.dispatch_key import unwatched

INPUTS_AT_ONCE = 128
NESTED_BY_A_KERNEL = (torch.float32, torch.float16)
PADDED_BY_A_KERNEL = (*NESTED_BY_A_KERNEL, torch.float64)

OF_SPARSE_TENSORS = {
    **dict.fromkeys(("aten.add", "aten.add_"), 2),
    **dict.fromkeys(("aten.mul", "aten.mul_"), 1),
}
"""With how many sparse tensors CUDA has no code of its own: it adds one to a dense one by kernels, and
multiplies two by a table of hashes."""

_KEYS = {
    torch.strided: torch._C.DispatchKey.NestedTensorCPU,
    torch.sparse_coo: torch._C.DispatchKey.SparseCPU,
    **dict.fromkeys(
        (torch.sparse_csr, torch.sparse_csc), torch._C.DispatchKey.SparseCsrCPU
    ),
}
_SHARED = operations("of a layout")
SHARED: dict[torch.layout, tuple[torch._C.DispatchKey, tuple[str, ...]]] = {
    layout: (key, in_aten(_SHARED[str(layout).removeprefix("torch.")]))
    for layout, key in _KEYS.items()
}
"""The host's code for operations on tensors of a layout that CUDA has too, nested ones among the strided."""


_NESTED = (
    "torch.nested.as_nested_tensor([torch.ones(2, 3).cuda(), torch.ones(4, 3).cuda()])"
)


_QUERY = (
    "torch.nested.as_nested_tensor([torch.ones(2, 4).cuda(), torch.ones(4, 4).cuda()])"
)
_PROJECTIONS = ", ".join(
    f"torch.ones({size}, device='cuda')" for size in ("12, 4", "12", "4, 4", "4")
)
FUSED_TYPES = (torch.float32, torch.float16, torch.bfloat16)

_SPARSE = (
    "torch.sparse_coo_tensor(index.expand(2, 3), y, (4, 4), check_invariants=False)"
)


_MASK = "torch.tensor([[True, False], [True, True]], device='cuda')"


@unwatched
def _sizes(nested: Tensor) -> Tensor:
    return nested._nested_tensor_size()


@CostRule(
    id="pad-nested",
    ops=("aten.to_padded_tensor",),
    source="ATen/native/nested/cuda/NestedTensorTransformerFunctions.cpp: sizes and offsets are copied, "
    "as int32, which blocks; one kernel",
    example=f"torch.nested.to_padded_tensor({_NESTED}, 0.0)",
    when=lambda call: (
        2 <= call.first.dim() <= 4 and call.first.dtype in PADDED_BY_A_KERNEL
    ),
    any_layout=True,
)
def _pad(call: OperationCall) -> OpCost:
    nested, result = call.first, call.result
    sizes = _sizes(nested)
    batch, columns = sizes.shape
    # A last dimension of one length is a part of the one before.
    if (
        nested.dim() == 3
        and call.argument("output_size") is None
        and bool((sizes[:, 1] == sizes[0, 1]).all())
    ):
        columns = 1
    told = COUNT_BYTES * (1 + batch + batch * columns)
    return OpCost(kernels_over(result), 1, (("h2d", told),), workspaces=(told,))


def _is_attention_by_a_fused_kernel(call: OperationCall) -> bool:
    """Return whether the heads of nested queries, keys and values, all one, are whole vectors of 16 bytes."""
    query = call.first
    size = (
        call.argument("embed_dim") // call.argument("num_head") * query.element_size()
    )
    is_of_itself = query is call.args[1] and query is call.args[2]
    return (
        query.is_nested
        and query.dtype in FUSED_TYPES
        and is_of_itself
        and not size % 16
    )


@CostRule(
    id="attention-of-nested",
    ops=("aten._native_multi_head_attention",),
    source="ATen/native/transformers/cuda/attention.cu: linear, scaled_dot_product_attention, linear; "
    "ATen/native/nested/cuda/NestedTensorTransformerUtils.cpp: cumulative lengths of queries and of keys are "
    "copied from pageable memory, each with a wait. Recorded on an H100",
    example=f"torch._native_multi_head_attention(*[{_QUERY}] * 3, 4, 1, {_PROJECTIONS})",
    when=_is_attention_by_a_fused_kernel,
    approximate=True,
    any_layout=True,
)
def _attend(call: OperationCall) -> OpCost:
    """Attention whose kernels and memory are a library's."""
    ends = COUNT_BYTES * (1 + len(_sizes(call.first)))
    told = OpCost(waits=2, copies=(("h2d", ends),) * 2, temporaries=(ends, ends))
    return replace(told, launches=1, library=LibraryWork(4, ANYTHING))


CostRule(
    id="attention-with-projections",
    ops=("aten._native_multi_head_attention",),
    source="ATen/native/transformers/cuda/attention.cu: products, attention or a softmax; nothing is read",
    example=f"torch._native_multi_head_attention(*[x.view(1, 2, 4)] * 3, 4, 1, {_PROJECTIONS})",
    when=lambda call: not call.first.is_nested,
    approximate=True,
)(one_kernel)


@CostRule(
    id="layer-norm-of-nested",
    ops=("aten.layer_norm", "aten.native_layer_norm"),
    source="ATen/native/nested/NestedTensorMath.cpp, NestedTensor_layer_norm: LayerNormKernel on the buffer, "
    "with a mean and a deviation for each row",
    example=f"torch.nn.functional.layer_norm({_NESTED}, (3,), y, y)",
    when=lambda call: call.first.is_nested,
    any_layout=True,
)
def _layer_norm_of_nested(call: OperationCall) -> OpCost:
    columns = prod(call.argument("normalized_shape"))
    is_by_vectors = columns % VECTOR == 0 and call.first.dtype in VECTORIZED
    cost = OpCost(1 if is_by_vectors else 2)
    if len(call.outputs) > 1:
        return cost
    rows = int(_sizes(call.first).prod(1).sum()) // columns
    return cost + OpCost(workspaces=(COUNT_BYTES * rows,) * 2)


@CostRule(
    id="jagged-of-padded",
    ops=("aten._padded_dense_to_jagged_forward",),
    source="ATen/native/nested/cuda/NestedTensorTransformerFunctions.cu: the last offset is read unless it "
    "is given; two results of which one is kept, and one kernel, but for half precision",
    example="torch.ops.aten._padded_dense_to_jagged_forward(x.view(2, 4, 1), [index.sort().values])",
    when=lambda call: call.first.dtype is not torch.float16,
)
def _jagged_of_padded(call: OperationCall) -> OpCost:
    ends, result = call.args[1][-1], call.result
    made = OpCost(kernels_over(result), temporaries=(result.nbytes,))
    if call.argument("total_L") is not None:
        return made
    work = reduce_all(ends.numel(), Arithmetic("extremum", INDEX_BYTES), call.profile)
    read = OpCost(
        work.launches,
        1,
        (("d2h", INDEX_BYTES),),
        (INDEX_BYTES,),
        workspaces=work.workspaces,
    )
    return read + made


@CostRule(
    id="nested-of-list",
    ops=("aten._nested_tensor_from_tensor_list",),
    source="ATen/native/nested/NestedTensorUtils.h: cat of the flat parts; those of the host are copied",
    example=_NESTED,
    any_layout=True,
    takes_host_tensors=True,
)
def _of_list(call: OperationCall) -> OpCost:
    if any(map(call.is_on_host, call.inputs)):
        nbytes = sum(each.nbytes for each in call.inputs)
        return OpCost(waits=1, copies=(("h2d", nbytes),))
    return sum(map(contiguous, call.inputs), FREE) + OpCost(
        -(-len(call.inputs) // INPUTS_AT_ONCE)
    )


@CostRule(
    id="coalesce",
    ops=("aten._coalesce",),
    source="ATen/native/sparse/cuda/SparseCUDATensor.cu: indices sorted by Thrust, the number of unique "
    "ones read, values added up; of fewer than 2 a copy",
    example="torch.sparse_coo_tensor(index[None], y, (4,), check_invariants=True).coalesce()",
    any_layout=True,
)
def _coalesce(call: OperationCall) -> OpCost:
    sparse, result = call.first, call.result
    indices, values = _parts(sparse)
    if indices.shape[1] < 2:
        return sum(map(copied_within, _parts(result), (indices, values)), FREE)
    return _sorted(indices, values)


def _sorted(indices: Tensor, values: Tensor) -> OpCost:
    dims = len(indices)
    # Flattened by a product with the strides of the dimensions, and a sum. Two ranges, a sort, and what is
    # unique, whose count is read; a sum of values; and of each dimension a copy, a division, a difference.
    again = dims if dims > 1 else 0
    # The only dimension is cloned.
    unique = indices.unique(dim=1)  # type: ignore[no-untyped-call]  # not annotated
    copied = INDEX_BYTES * unique.shape[1] if again else indices.nbytes
    return OpCost(
        launches=dims + 5 + int(prod(values.shape) > 0) + 2 * again,
        waits=1,
        copies=(("d2h", INDEX_BYTES), *(("d2d", copied),) * dims),
        library=LibraryWork(0, THRUST),
    )


# Each algorithm of Thrust may wait once more for the stream when it ends.
THRUST = ANYTHING | dict.fromkeys(
    ("syncs", "stream_syncs", "drains", "d2h", "d2h_bytes"), (0, inf)
)


# What cuSPARSE computes is not waited for; its kernels and its workspace are its own choice.
CUSPARSE = LibraryWork(1, {"launches": (0, inf), **dict.fromkeys(MEMORY, (0, inf))})


def _is_sparse_product(call: OperationCall) -> bool:
    layouts = [call.argument(name).layout for name in call.names[:3]]
    return layouts[::2] == [torch.strided] * 2 and layouts[1] in (
        torch.sparse_coo,
        torch.sparse_csr,
    )


@CostRule(
    id="product-of-sparse",
    ops=("aten.addmm", "aten.addmm_"),
    source="ATen/native/sparse/cuda/SparseCUDATensorMath.cu: of coordinates, rows and columns as int32, "
    "then cusparseSpMM; SparseBlas.cpp, SparseBlasImpl.cpp: of rows, cusparseSpMM; nothing waits",
    example=f"torch.sparse.mm({_SPARSE}.coalesce(), torch.ones(4, 2, device='cuda'))",
    when=_is_sparse_product,
    any_layout=True,
)
def _sparse_product(call: OperationCall) -> OpCost:
    """A sparse matrix times a dense one, added to what was copied to, or cleared in, the result."""
    added, sparse, dense = (call.argument(name) for name in call.names[:3])
    result = call.result
    if not result.numel():
        return FREE
    copied = copied_within(result, added)
    made = OpCost(library=CUSPARSE) + (
        FREE if 1 in dense.stride() else contiguous(dense)
    )
    if sparse.layout is not torch.sparse_coo:
        # What is multiplied by 0 is not copied, as an H100 showed.
        return copied + made if call.argument("beta", 1) else made
    # Rows and columns become int32; the memory that this takes is cuSPARSE's too.
    made += OpCost(2)
    # cuSPARSE writes by columns, to a copy of the result, which is copied back; a single one is bytes.
    turned = (
        OpCost(copies=(("d2d", result.nbytes),))
        if 1 in result.shape
        else OpCost(kernels_over(result))
    )
    made += turned + turned
    if not call.argument("beta", 1):
        copied = OpCost(kernels_over(result))
    if sparse.is_coalesced():
        return copied + made
    return replace(
        _sorted(*_parts(sparse)) + copied + made, library=LibraryWork(1, THRUST)
    )


def _is_added_to_dense(call: OperationCall) -> bool:
    first, second = call.args[:2]
    # Either may be a number.
    layouts = [getattr(each, "layout", None) for each in (first, second)]
    return layouts == [torch.strided, torch.sparse_coo] and first.dtype == second.dtype


@CostRule(
    id="sparse-added-to-dense",
    ops=("aten.add.Tensor", "aten.add_.Tensor"),
    source="ATen/native/sparse/cuda/SparseCUDATensorMath.cu: one kernel if coalesced, else index_add_ at "
    "the flattened indices",
    example=f"{_SPARSE}.coalesce().to_dense()",
    when=_is_added_to_dense,
    any_layout=True,
)
def _add_sparse(call: OperationCall) -> OpCost:
    """A sparse tensor added to a dense one, in place or to a copy."""
    dense, sparse = call.args[:2]
    indices, values = _parts(sparse)
    result = call.result
    copied = copied_within(result, dense)
    if not values.numel():
        return copied
    if sparse.is_coalesced():
        return copied + OpCost(1)
    # Positions of several dimensions become one, and each value is added where it belongs.
    flattened = (
        OpCost(1, temporaries=(INDEX_BYTES * indices.shape[1],))
        if len(indices) > 1
        else FREE
    )
    return (
        copied
        + flattened
        + OpCost(1, library=LibraryWork(0, {**ANYTHING, "allocations": (0, inf)}))
    )


@unwatched
def _parts(sparse: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        return sparse._indices(), sparse._values()


CostRule(
    id="sizes-of-nested",
    ops=tuple(
        f"aten._nested_tensor_{name}" for name in ("size", "strides", "storage_offsets")
    ),
    source="ATen/NestedTensorImpl.h: sizes, strides and offsets are tensors of the host",
    example="torch.nested.as_nested_tensor([y, y])._nested_tensor_size()",
    any_layout=True,
)(FREE)


@CostRule(
    id="nested-of-padded",
    ops=("aten._nested_from_padded",),
    source="ATen/native/nested/cuda/NestedTensorTransformerFunctions.cpp: sizes and offsets are copied "
    "as int64 without blocking, and made int32 there; one kernel",
    example="torch._nested_from_padded(torch.ones(2, 4, 3).cuda(), torch.tensor([[2, 3], [4, 3]]))",
    when=lambda call: (
        call.first.dtype in (torch.float32, torch.float16)
        and call.first.dim() in (3, 4)
    ),
    any_layout=True,
    takes_host_tensors=True,
)
def _of_padded(call: OperationCall) -> OpCost:
    """Copy sizes, dimensions and offsets, which a kernel makes narrower, then the rows."""
    padded, sizes = call.first, _sizes(call.result)
    told = sizes.numel() + padded.dim() + 1 + len(sizes)
    # Not waited for: a temporary of the host is read at once.
    copied = INDEX_BYTES * told
    return OpCost(2, copies=(("h2d", copied),), workspaces=(copied, COUNT_BYTES * told))


CostRule(
    id="padded-of-jagged",
    ops=("aten._jagged_to_padded_dense_forward",),
    source="ATen/native/nested/cuda/NestedTensorTransformerFunctions.cu: an empty result; one kernel, which "
    "finds lengths by the offsets on the device",
    example="torch.ops.aten._jagged_to_padded_dense_forward(x[:, None], [index.cumsum(0)], [4])",
)(one_kernel)

CostRule(
    id="sparse-of-parts",
    ops=in_aten(operations("free if sparse")),
    source="ATen/native/sparse/SparseTensor.cpp, ATen/SparseTensorImpl.h: indices and values are taken "
    "as they are, and what is known of them lies on the host",
    example="torch.sparse_coo_tensor(index[None], y, (4,), check_invariants=False)",
    any_layout=True,
)(FREE)

CostRule(
    id="rows-times-vector",
    ops=("aten.addmv", "aten.addmv_"),
    source="ATen/native/sparse/cuda/SparseBlas.cpp, SparseBlasImpl.cpp: a copy unless in place or times "
    "0, then cusparseSpMV; nothing waits",
    example="torch.eye(3, device='cuda').to_sparse_csr() @ y",
    when=lambda call: (
        call.argument("mat").layout is torch.sparse_csr
        and call.argument("mat")._nnz() > 0
    ),
    any_layout=True,
)(
    lambda call: (
        (copied_within(call.result, call.first) if call.argument("beta", 1) else FREE)
        + contiguous(call.argument("vec"))
        + OpCost(library=CUSPARSE)
    )
)

CostRule(
    id="where-rows-begin",
    ops=("aten._convert_indices_from_coo_to_csr",),
    source="ATen/native/sparse/cuda/SparseCsrTensorMath.cu: one kernel, or a fill where nothing is",
    example="torch._convert_indices_from_coo_to_csr(index.sort().values, 3)",
)(OpCost(1))

CostRule(
    id="rows-of-elements",
    ops=("aten._convert_indices_from_csr_to_coo",),
    source="ATen/native/sparse/cuda/SparseCsrTensorMath.cu: a copy of the columns, and one kernel",
    example="torch._convert_indices_from_csr_to_coo(index.sort().values, index[:2])",
    when=lambda call: call.first.dim() == 1,
)(lambda call: OpCost(1) + copied_within(call.result[1], call.args[1]))
