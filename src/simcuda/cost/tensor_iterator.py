"""How kernels walk tensors, by ATen's ``TensorIterator``: in which order, and cut into which parts.

A kernel's byte offsets have to fit in 31 bits, so that larger iterations are cut up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

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


def fits_32_bits(shape: Shape, operands: Sequence[Shape]) -> bool:
    """Whether one kernel can index all of ``shape``; each operand is its strides in bytes."""
    elements = 1
    for size in shape:
        elements *= size
    # How many bytes an operand reaches from its first element on.
    extents = (
        1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        for strides in operands
    )
    return elements <= LARGEST_OFFSET and all(extent <= LARGEST_OFFSET for extent in extents)


def parts(shape: Shape, operands: Sequence[Shape]) -> Iterator[Shape]:
    """The shapes that each get a kernel: the dimension that reaches furthest is halved until all fit."""
    if fits_32_bits(shape, operands):
        yield shape
        return
    reach = [max((size - 1) * strides[dim] for strides in operands) for dim, size in enumerate(shape)]
    # The last of equals: the search runs from the outermost dimension inwards.
    widest = max(range(len(shape)), key=lambda dim: (reach[dim], dim))
    half = shape[widest] // 2
    for size in (half, shape[widest] - half):
        yield from parts((*shape[:widest], size, *shape[widest + 1 :]), operands)


def iterate(
    shape: Shape, strides: Shape, reduced: Collection[int], itemsize: int, result_itemsize: int
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
    for mine, theirs in ((one.result_stride, other.result_stride), (one.stride, other.stride)):
        if mine and theirs and mine != theirs:
            return mine < theirs
    return False
