"""Reading and writing by index, where masks and host indices make the host wait."""

from __future__ import annotations

from dataclasses import replace

import torch

from simcuda.call import Call, Cost, nbytes
from simcuda.launches import elementwise
from simcuda.rules.registry import Rule

MASKS = (torch.bool, torch.uint8)
INDEX_BYTES = 8


def _indices(call: Call) -> list[torch.Tensor]:
    return [index for index in call.argument("indices") if index is not None]


def _kernels(tensor: torch.Tensor) -> int:
    return elementwise(tensor.numel(), tensor.element_size())


def find_true(mask: torch.Tensor, found: int) -> Cost:
    """The cost of ``nonzero``: a sum and a selection by CUB, and a wait for how many elements there are."""
    launches = 3 + int(mask.dim() > 1) if mask.numel() else 0
    count = (("d2h", 4),) if mask.numel() else ()
    return Cost(
        launches=launches, waits=len(count), copies=count, temporaries=(found * mask.dim() * INDEX_BYTES,)
    )


def _resolve(call: Call) -> Cost:
    """Copying host indices to the device, and turning masks into indices."""
    launches = waits = 0
    copies: list[tuple[str, int]] = []
    temporaries: list[int] = []
    for index in _indices(call):
        on_host, is_mask = call.is_on_host(index), index.dtype in MASKS
        if on_host or is_mask:
            found = int(index.count_nonzero()) if is_mask else index.numel()
            found_bytes = found * (index.dim() if is_mask else 1) * INDEX_BYTES
            temporaries.append(found_bytes)
        if is_mask and not on_host:
            cost = find_true(index, found)
            launches, waits = launches + cost.launches, waits + cost.waits
            copies += cost.copies
        elif on_host:
            copies.append(("h2d", found_bytes))
            waits += 1
    return Cost(launches=launches, waits=waits, copies=tuple(copies), temporaries=tuple(temporaries))


def _read(call: Call) -> Cost:
    first = _resolve(call)
    return Cost(first.launches + _kernels(call.results()[0]), first.waits, 0, first.copies, first.temporaries)


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
    tensor, value = call.args[0], call.argument("values")
    copies, waits = first.copies, first.waits
    temporaries = first.temporaries
    if call.is_on_host(value):
        copies, waits = (*copies, ("h2d", nbytes(value))), waits + 1
        temporaries = (*temporaries, nbytes(value))
    if call.results()[0] is not tensor:
        copies = (*copies, ("d2d", nbytes(tensor)))
    return Cost(first.launches + int(value.numel() > 0), waits, 0, copies, temporaries)


def _accumulate(call: Call) -> Cost:
    first = _write(call)
    elements = max((index.numel() for index in _indices(call)), default=0)
    # The linear index, the sorted one, the original positions, and their sorted order.
    buffers = (elements * INDEX_BYTES,) * 4
    return Cost(first.launches + 3, first.waits, 0, first.copies, (*first.temporaries, *buffers))


def _nonzero(call: Call) -> Cost:
    mask = call.args[0]
    # Its temporaries are the result.
    return replace(find_true(mask, call.results()[0].shape[0]), temporaries=())


def _select(call: Call) -> Cost:
    mask, result = call.argument("mask"), call.results()[0]
    found = find_true(mask, result.numel())
    return Cost(found.launches + _kernels(result), found.waits, 0, found.copies, found.temporaries)


def _value_from_device(call: Call) -> Cost:
    tensor, value = call.args[0], call.argument("value")
    copies: tuple[tuple[str, int], ...] = ()
    waits = 0
    if isinstance(value, torch.Tensor) and not call.is_on_host(value):
        copies, waits = (("d2h", value.element_size()),), 1
    if call.results()[0] is not tensor:
        copies = (*copies, ("d2d", nbytes(tensor)))
    return Cost(_kernels(tensor), waits, 0, copies)


def _copy_then_one_kernel(call: Call) -> Cost:
    tensor = call.args[0]
    copied = call.results()[0] is not tensor and tensor.numel() > 0
    copies = (("d2d", nbytes(tensor)),) if copied else ()
    return Cost(int(call.argument("index").numel() > 0), copies=copies)


_INTO_COPIES = ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_reduce")

TOPIC = (
    Rule(
        id="write-one-value-by-mask",
        ops=("aten.index_put_", "aten.index_put", "aten._index_put_impl_"),
        when=_writes_one_value_by_mask,
        counts=lambda call: Cost(_kernels(call.args[0])),
        source="ATen/native/TensorAdvancedIndexing.cpp: one host value under one mask is a masked_fill",
        example="x[x > 0] = 1.0",
        takes_host_tensors=True,
    ),
    Rule(
        id="accumulate-by-index",
        ops=("aten.index_put_", "aten.index_put", "aten._index_put_impl_"),
        when=lambda call: bool(call.argument("accumulate", default=False)),
        counts=_accumulate,
        source="ATen/native/cuda/Indexing.cu: indices are sorted by CUB, then one kernel adds",
        example="x.index_put_((index,), x[index], accumulate=True)",
        approximate=True,
        takes_host_tensors=True,
    ),
    Rule(
        id="write-by-index",
        ops=("aten.index_put_", "aten.index_put", "aten._index_put_impl_"),
        counts=_write,
        source="ATen/native/IndexingUtils.h: masks become indices by nonzero, host indices and a host value "
        "are copied to the device, each with a wait",
        example="x[index] = y",
        takes_host_tensors=True,
    ),
    Rule(
        id="read-by-index",
        ops=("aten.index",),
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
        id="fill-selected",
        ops=("aten.masked_fill_", "aten.masked_fill", "aten.index_fill_", "aten.index_fill"),
        counts=_value_from_device,
        source="ATen/native/cuda/Indexing.cu: a device value is read by the host first",
        example="x.masked_fill_(x > 0, value)",
    ),
    Rule(
        id="read-along-dimension",
        ops=("aten.gather", "aten.index_select", "aten.take", "aten.embedding"),
        counts=lambda call: Cost(_kernels(call.results()[0])),
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
