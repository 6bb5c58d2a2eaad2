"""Reading and writing by index, where masks and host indices make the host wait."""

from __future__ import annotations

from dataclasses import replace

import torch

from simcuda.cost.call import Call, Cost, nbytes
from simcuda.cost.copies import same_bytes
from simcuda.cost.indexing import LARGEST_OFFSET
from simcuda.cost.launches import elementwise
from simcuda.cost.rules.counting import contiguous
from simcuda.cost.rules.registry import Rule
from simcuda.cost.rules.sorting import sort

MASKS = (torch.bool, torch.uint8)
INDEX_BYTES = 8
COUNT_BYTES = 4
CHUNK_ELEMENTS = 2**30
FEW_INDICES = 3072
INDICES_OF_A_PART = 10
HALF_BYTES = 2


def _indices(call: Call) -> list[torch.Tensor]:
    return [index for index in call.argument("indices") if index is not None]


def _kernels(tensor: torch.Tensor) -> int:
    return elementwise(tensor.numel(), tensor.element_size())


def find_true(mask: torch.Tensor, found: int) -> Cost:
    """The cost of ``nonzero``: a sum and a selection by CUB, and a wait for how many elements there are.

    Of CUB's kernels the fewest are counted: one that adds up, two that select.
    """
    chunks = 1 if mask.numel() < LARGEST_OFFSET else -(-mask.numel() // CHUNK_ELEMENTS)
    dense_kernels, dense = contiguous(mask)
    select = 2 * chunks if mask.dim() else 0
    unravel = 1 if found and mask.dim() > 1 else 0
    return Cost(
        launches=dense_kernels + chunks + select + unravel,
        waits=1,
        copies=(("d2h", COUNT_BYTES * chunks),),
        temporaries=(*dense, COUNT_BYTES * chunks, found * mask.dim() * INDEX_BYTES),
    )


def _resolve(call: Call) -> Cost:
    """Copying host indices to the device, and turning masks into indices."""
    steps = [_resolve_one(index, on_host=call.is_on_host(index)) for index in _indices(call)]
    return Cost(
        launches=sum(step.launches for step in steps),
        waits=sum(step.waits for step in steps),
        copies=tuple(copy for step in steps for copy in step.copies),
        temporaries=tuple(size for step in steps for size in step.temporaries),
    )


def _resolve_one(index: torch.Tensor, *, on_host: bool) -> Cost:
    is_mask = index.dtype in MASKS
    if is_mask and not on_host:
        return find_true(index, int(index.count_nonzero()))
    if not on_host:
        return Cost()
    found = int(index.count_nonzero()) if is_mask else index.numel()
    # A host mask becomes an index for each of its dimensions before anything is copied.
    sizes = (found * INDEX_BYTES,) * (index.dim() if is_mask else 1)
    copied = tuple(size for size in sizes if size)
    return Cost(waits=len(copied), copies=tuple(("h2d", size) for size in copied), temporaries=copied)


def _read(call: Call) -> Cost:
    first = _resolve(call)
    return Cost(first.launches + _kernels(call.outputs[0]), first.waits, 0, first.copies, first.temporaries)


def _is_by_mask(call: Call) -> bool:
    """Whether a mask on the device is searched, which CUB does."""
    return any(index.dtype in MASKS and not call.is_on_host(index) for index in _indices(call))


def _writes_one_value_by_mask(call: Call) -> bool:
    value = call.argument("values")
    indices = _indices(call)
    return (
        value.numel() == 1
        and call.is_on_host(value)
        and len(indices) == 1
        and indices[0].dtype in MASKS
        and not call.is_on_host(indices[0])
        and not call.argument("accumulate", default=False)
    )


def _write(call: Call) -> Cost:
    first = _resolve(call)
    value = call.argument("values")
    copies, waits = first.copies, first.waits
    temporaries = first.temporaries
    if call.is_on_host(value):
        copies, waits = (*copies, ("h2d", nbytes(value))), waits + 1
        temporaries = (*temporaries, nbytes(value))
    copied = _copied(call)
    kernels = first.launches + copied.launches + int(value.numel() > 0)
    return Cost(kernels, waits, 0, (*copies, *copied.copies), temporaries)


def _accumulate(call: Call) -> Cost:
    """Indices become places, which are sorted with where they came from; one kernel adds up what meets.

    For each index the remainder, its product with a stride, and the sum with those before; then the division
    by what one place holds, a range, the sort, and the addition. Unless they are trusted, assertions on the
    device compare the largest and the least with the bounds.
    """
    first = _write(call)
    indices = _indices(call)
    elements = max((index.numel() for index in indices), default=0)
    checks = 0 if call.argument("unsafe", default=False) else 6 * len(indices)
    places = 3 * len(indices) - 1
    # The places, sorted and not, where they came from, sorted and not, and the sort's copies of both.
    buffers = (elements * INDEX_BYTES,) * 6
    kernels = first.launches + checks + places + 3
    return Cost(kernels, first.waits, 0, first.copies, (*first.temporaries, *buffers))


def _embedding_backward(call: Call) -> Cost:
    """Few indices add up in place; many are sorted, and each run of equal ones is added up in parts."""
    gradient, indices, result = call.args[0], call.args[1], call.outputs[0]
    dense, copied = contiguous(gradient)
    cleared = _kernels(result)
    by_frequency = call.argument("scale_grad_by_freq", default=False)
    count, rows = indices.numel(), result.shape[0]
    if not count:
        return Cost(dense + cleared, temporaries=copied)
    if count <= FEW_INDICES and not by_frequency:
        return Cost(dense + cleared + 1, temporaries=copied)
    held = (count * INDEX_BYTES,) * (3 if by_frequency else 2)
    segments = min(count, rows)
    parts = count // INDICES_OF_A_PART + segments
    width = result.element_size() if result.element_size() > HALF_BYTES else 2 * HALF_BYTES
    sums = (count, 1, segments, segments, 1, parts)
    workspaces = (*(n * INDEX_BYTES for n in sums), parts * result.shape[1] * width)
    # Half precision adds up in a single-precision copy of the result.
    widened = (2 * nbytes(result),) if result.element_size() == HALF_BYTES else ()
    # A range and a sort; unique places, parts, their running sum, count and offsets; the sums, and their sum.
    kernels = dense + cleared + 2 + 2 + 1 + 2 + 2 + 2 + 2 * len(widened) + (2 if by_frequency else 0)
    # While sorting: both copies of the indices and where they came from, a range, and the sort's own.
    sorting = (count * INDEX_BYTES,) * 3
    return Cost(
        kernels, passing=(*held, *sorting), temporaries=(*copied, *held), workspaces=(*workspaces, *widened)
    )


def _nonzero(call: Call) -> Cost:
    cost = find_true(call.args[0], len(call.outputs[0]))
    # The indices are the result.
    return replace(cost, temporaries=cost.temporaries[:-1])


def _select(call: Call) -> Cost:
    tensor, mask, result = call.args[0], call.argument("mask"), call.outputs[0]
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)  # type: ignore[no-untyped-call]  # not annotated
    found = find_true(mask.expand(shape), result.numel())
    return Cost(found.launches + _kernels(result), found.waits, 0, found.copies, found.temporaries)


def _gather_selected(call: Call) -> Cost:
    """The gradient of the source of ``masked_scatter``: what was selected, and zeros for what was not."""
    gradient, mask, result = call.args[0], call.argument("mask"), call.outputs[0]
    shape = torch.broadcast_shapes(gradient.shape, mask.shape)  # type: ignore[no-untyped-call]  # not annotated
    mask = mask.expand(shape)
    selected = int(mask.count_nonzero())
    found = find_true(mask, selected)
    missing = result.numel() - selected
    temporaries = (
        *found.temporaries,
        *(s * result.element_size() for s in (selected, missing) if missing > 0),
    )
    filled = 2 if missing > 0 else 0
    return Cost(found.launches + int(selected > 0) + filled, found.waits, 0, found.copies, temporaries)


def _shorten(call: Call) -> Cost:
    """The indices are sorted, and each row that is named is scaled once."""
    indices = call.argument("indices")
    if not indices.numel():
        return Cost()
    ordered = sort(indices, indices.contiguous(), max(indices.dim() - 1, 0))
    pair = (nbytes(indices), indices.numel() * INDEX_BYTES)
    temporaries = (*pair, *ordered.workspaces, nbytes(indices), INDEX_BYTES)
    # CUB's selection of what is unique is two kernels.
    return Cost(ordered.launches + 3, copies=ordered.copies, temporaries=temporaries)


def _fill_selected(call: Call) -> Cost:
    result, value = call.outputs[0], call.argument("value")
    copied = _copied(call)
    if isinstance(value, torch.Tensor) and not call.is_on_host(value):
        read = ("d2h", value.element_size())
        return Cost(copied.launches + _selected(call, result), 1, 0, (read, *copied.copies))
    return Cost(copied.launches + _selected(call, result), copies=copied.copies)


def _selected(call: Call, result: torch.Tensor) -> int:
    index = call.argument("index")
    return _kernels(result) if index is None else int(index.numel() > 0 and result.numel() > 0)


def _copied(call: Call) -> Cost:
    """The copy of the first argument in which an operation works that is not in place."""
    tensor, result = call.args[0], call.outputs[0]
    if result is tensor or not result.numel():
        return Cost()
    if same_bytes(result, tensor):
        return Cost(copies=(("d2d", nbytes(result)),))
    return Cost(_kernels(result))


def _copy_then_one_kernel(call: Call) -> Cost:
    copied = _copied(call)
    return replace(copied, launches=copied.launches + int(call.argument("index").numel() > 0))


WRITES = ("aten.index_put_", "aten.index_put", "aten._index_put_impl_", "aten._unsafe_index_put")
_INTO_COPIES = ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_reduce")

TOPIC = (
    Rule(
        id="write-one-value-by-mask",
        ops=WRITES,
        when=_writes_one_value_by_mask,
        counts=lambda call: Cost(_kernels(call.args[0])),
        source="ATen/native/TensorAdvancedIndexing.cpp: one host value under one mask is a masked_fill",
        example="x[x > 0] = 1.0",
        takes_host_tensors=True,
    ),
    Rule(
        id="accumulate-by-index",
        ops=WRITES,
        when=lambda call: bool(call.argument("accumulate", default=False)),
        counts=_accumulate,
        source="ATen/native/cuda/Indexing.cu: indices are sorted by CUB, then one kernel adds",
        example="x.index_put_((index,), x[index], accumulate=True)",
        approximate=True,
        takes_host_tensors=True,
    ),
    Rule(
        id="write-by-mask",
        ops=WRITES,
        when=_is_by_mask,
        counts=_write,
        source="ATen/native/IndexingUtils.h: masks become indices by nonzero, whose count the host reads",
        example="x[x > 0] = value",
        approximate=True,
        takes_host_tensors=True,
    ),
    Rule(
        id="write-by-index",
        ops=WRITES,
        counts=_write,
        source="ATen/native/IndexingUtils.h: host indices and a host value are copied, each with a wait",
        example="x[index] = y",
        takes_host_tensors=True,
    ),
    Rule(
        id="read-by-mask",
        ops=("aten.index", "aten._unsafe_index"),
        when=_is_by_mask,
        counts=_read,
        source="ATen/native/IndexingUtils.h, as for writing",
        example="x[x > 0]",
        approximate=True,
        takes_host_tensors=True,
    ),
    Rule(
        id="read-by-index",
        ops=("aten.index", "aten._unsafe_index"),
        counts=_read,
        source="ATen/native/IndexingUtils.h, as for writing",
        example="x[index]",
        takes_host_tensors=True,
    ),
    Rule(
        id="nonzero",
        ops=("aten.nonzero", "aten.argwhere"),
        counts=_nonzero,
        source="ATen/native/cuda/Nonzero.cu: CUB counts, the host reads the count, CUB selects",
        example="(x > 0).nonzero()",
        approximate=True,
    ),
    Rule(
        id="masked-select",
        ops=("aten.masked_select",),
        counts=_select,
        source="ATen/native/cuda/IndexKernel.cpp: index with the mask",
        example="x.masked_select(x > 0)",
        approximate=True,
    ),
    Rule(
        id="gradient-of-masked-scatter",
        ops=("aten.masked_scatter_backward",),
        counts=_gather_selected,
        source="ATen/native/TensorAdvancedIndexing.cpp: masked_select, then zeros for what is missing",
        example="torch.ops.aten.masked_scatter_backward(x, x > 0, [8])",
        approximate=True,
    ),
    Rule(
        id="shorten-rows",
        ops=("aten.embedding_renorm_",),
        counts=_shorten,
        source="ATen/native/cuda/Embedding.cu: how many indices are unique stays on the device",
        example="torch.embedding_renorm_(torch.ones(3, 2, device='cuda'), index, 1.0, 2.0)",
        approximate=True,
    ),
    Rule(
        id="gradient-of-embedding-few",
        ops=("aten.embedding_dense_backward",),
        counts=_embedding_backward,
        source="ATen/native/cuda/Embedding.cu: up to 3072 indices, zeros and one kernel",
        example="torch.ops.aten.embedding_dense_backward(torch.ones(3, 2).cuda(), index, 4, -1, False)",
        when=lambda call: (
            bool(call.args[1].numel() <= FEW_INDICES)
            and not call.argument("scale_grad_by_freq", default=False)
        ),
    ),
    Rule(
        id="gradient-of-embedding",
        ops=("aten.embedding_dense_backward",),
        counts=_embedding_backward,
        source="ATen/native/cuda/EmbeddingBackwardKernel.cu: a sort by CUB, then sums of parts of 10 indices",
        example="torch.ops.aten.embedding_dense_backward(torch.ones(3, 2).cuda(), index, 4, -1, True)",
        approximate=True,
    ),
    Rule(
        id="fill-selected",
        ops=("aten.masked_fill_", "aten.masked_fill", "aten.index_fill_", "aten.index_fill"),
        counts=_fill_selected,
        source="ATen/native/cuda/Indexing.cu: a device value is read by the host first",
        example="x.masked_fill_(x > 0, value)",
    ),
    Rule(
        id="read-along-dimension",
        ops=("aten.gather", "aten.index_select", "aten.take", "aten.embedding"),
        counts=lambda call: Cost(_kernels(call.outputs[0])),
        source="ATen/native/cuda/ScatterGatherKernel.cu, Indexing.cu: one kernel",
        example="x.index_select(0, index)",
    ),
    Rule(
        id="write-along-dimension",
        ops=tuple(f"aten.{name}{end}" for name in _INTO_COPIES for end in ("", "_")),
        counts=_copy_then_one_kernel,
        source="ATen/native/TensorAdvancedIndexing.cpp: a copy where not in place, then one kernel",
        example="x.index_add_(0, index, y)",
    ),
    Rule(
        id="put",
        ops=("aten.masked_scatter_", "aten.masked_scatter"),
        counts=lambda call: Cost(3, workspaces=(call.args[0].numel() * INDEX_BYTES,)),
        source="ATen/native/cuda/IndexKernel.cpp: a prefix sum of the mask, then one kernel",
        example="x.masked_scatter_(x > 0, x)",
        approximate=True,
    ),
)
