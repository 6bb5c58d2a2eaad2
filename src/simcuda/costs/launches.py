"""Count the kernels of operations whose number depends on sizes, and model how they walk tensors.

A launch here is one kernel of ATen; ``cudaMemcpyAsync``, the copy of dense memory of one type, and
``cudaMemsetAsync`` are none. A kernel walks tensors by ATen's ``TensorIterator``: its byte offsets have to
fit in 31 bits, so that larger iterations are cut up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch

from simcuda.costs.call import OpCost
from simcuda.profile import MultiTensorTables

CHUNK_ELEMENTS = 65_536
"""Elements that one block of a multi-tensor kernel walks."""

NORMS_PER_CLEANUP = 400
"""Tensors whose partial norms one kernel adds up."""


def elementwise(elements: int, itemsize: int) -> int:
    """Kernels of an elementwise operation on contiguous memory, by the widest operand's ``itemsize``."""
    if not elements:
        return 0
    # Almost always: no iterator needs to be built.
    if (elements - 1) * itemsize < LARGEST_OFFSET and elements <= LARGEST_OFFSET:
        return 1
    return sum(1 for _ in parts((elements,), [(itemsize,)]))


def kernels_over(tensor: torch.Tensor) -> int:
    """Kernels of an elementwise operation with this result.

    Its elements are taken to be the widest among those that are read and written.
    """
    return elementwise(tensor.numel(), tensor.element_size())


@lru_cache(maxsize=1024)
def multi_tensor(
    elements: tuple[int, ...],
    tables: MultiTensorTables,
    *,
    depth: int,
    scalars: bool = False,
) -> int:
    """Kernels of one multi-tensor operation.

    A kernel takes chunks until it is full of chunks, or full of tensors at the end of a tensor's last chunk;
    a tensor cut off in between continues as the first of the next kernel. Empty tensors take no place.

    Args:
        elements: Elements of each tensor of one list.
        tables: How much a kernel takes.
        depth: Lists of tensors walked side by side, results of an out-of-place operation included.
        scalars: Whether each tensor comes with its own scalar.
    """
    most_tensors = (tables.tensors_with_scalars if scalars else tables.tensors)[
        depth - 1
    ]
    launches = tensors = blocks = 0
    for count in elements:
        chunks = -(-count // CHUNK_ELEMENTS)
        tensors += 1 if chunks else 0
        while chunks:
            taken = min(chunks, tables.blocks - blocks)
            chunks -= taken
            blocks += taken
            if blocks == tables.blocks or tensors == most_tensors:
                launches += 1
                blocks = 0
                # A tensor that continues in the next kernel takes a place there too.
                tensors = 1 if chunks else 0
    return launches + (1 if blocks else 0)


def foreach_norm(
    elements: Sequence[int],
    tables: MultiTensorTables,
    *,
    accumulator_bytes: int,
    result_bytes: int,
) -> OpCost:
    """The fast path of ``_foreach_norm`` for tensors of one device and type.

    One kernel clears the partial norms, of which every tensor has as many as the largest has chunks; these
    are found by the multi-tensor kernels, and added up. An empty tensor gets a zero of its own, by a kernel,
    and the result that was made for it is dropped at the end.

    Args:
        elements: Elements of each tensor.
        tables: How much a kernel takes.
        accumulator_bytes: Bytes of the type in which it adds up.
        result_bytes: Bytes of one norm.
    """
    chunks = -(-max(elements, default=0) // CHUNK_ELEMENTS)
    clear = 1 if chunks else 0
    clean_up = -(-len(elements) // NORMS_PER_CLEANUP)
    zeros = sum(1 for count in elements if not count)
    return OpCost(
        clear + multi_tensor(tuple(elements), tables, depth=1) + clean_up + zeros,
        temporaries=(len(elements) * chunks * accumulator_bytes,),
        workspaces=(result_bytes,) * zeros,
    )


LARGEST_OFFSET = 2**31 - 1

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Dimension:
    """One dimension of the iteration: its size, and the strides in bytes of the input and of the result."""

    size: int
    stride: int
    result_stride: int

    @property
    def is_reduced(self) -> bool:
        """The result does not move along it."""
        return self.result_stride == 0


def parts(shape: Shape, operands: Sequence[Shape]) -> Iterator[Shape]:
    """The shapes that each get a kernel, for operands that each are their strides in bytes.

    The dimension that reaches furthest is halved until 32-bit offsets reach all.
    """
    reach = [
        [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
        for strides in operands
    ]
    if prod(shape) <= LARGEST_OFFSET and all(
        1 + sum(steps) <= LARGEST_OFFSET for steps in reach
    ):
        yield shape
        return
    # The last of equals: the search runs from the outermost dimension inwards.
    widest = max(
        range(len(shape)), key=lambda dim: (max(steps[dim] for steps in reach), dim)
    )
    half = shape[widest] // 2
    for size in (half, shape[widest] - half):
        yield from parts((*shape[:widest], size, *shape[widest + 1 :]), operands)


def iterate(
    shape: Shape,
    strides: Shape,
    reduced: Collection[int],
    itemsize: int,
    result_itemsize: int,
) -> list[Dimension]:
    """The dimensions a kernel walks to reduce those in ``reduced``: these first, each group fastest first.

    ``shape`` and ``strides`` are those of the input, in elements; the result is contiguous.
    """
    ordered: list[Dimension] = []
    result_stride = result_itemsize
    for dim in reversed(range(len(shape))):
        step = 0 if dim in reduced else result_stride
        ordered.append(Dimension(shape[dim], strides[dim] * itemsize, step))
        result_stride *= 1 if dim in reduced else shape[dim]
    # The insertion sort of ATen, whose comparison leaves some pairs undecided: such a pair is passed over,
    # and a clearly faster dimension changes places. Another sort would give another order.
    for moving in range(1, len(ordered)):
        here = moving
        for other in range(moving - 1, -1, -1):
            if _is_faster(ordered[here], ordered[other]):
                ordered[other], ordered[here] = ordered[here], ordered[other]
                here = other
    # Neighbours that one stride runs through are walked as one dimension.
    merged: list[Dimension] = []
    for dimension in ordered:
        last = merged[-1] if merged else None
        if last is not None and last.size == 1:
            merged[-1] = dimension
        elif last is not None and (
            dimension.size == 1
            or (last.size * last.stride, last.size * last.result_stride)
            == (dimension.stride, dimension.result_stride)
        ):
            merged[-1] = replace(last, size=last.size * dimension.size)
        else:
            merged.append(dimension)
    return merged


def _is_faster(one: Dimension, other: Dimension) -> bool:
    if one.is_reduced != other.is_reduced:
        return one.is_reduced
    for mine, theirs in (
        (one.result_stride, other.result_stride),
        (one.stride, other.stride),
    ):
        if mine and theirs and mine != theirs:
            return mine < theirs
    return False
