"""In which order a reduction walks its input: as much of ``TensorIterator`` as its cost depends on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from simcuda.cost.indexing import Shape


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


def iterate(
    shape: Shape, strides: Shape, reduced: Collection[int], itemsize: int, result_itemsize: int
) -> list[Dimension]:
    """The dimensions a kernel walks to reduce those in ``reduced``: these first, each group fastest first.

    ``shape`` and ``strides`` are those of the input, in elements; the result is contiguous.
    """
    dimensions: list[Dimension] = []
    result_stride = result_itemsize
    for dim in reversed(range(len(shape))):
        step = 0 if dim in reduced else result_stride
        dimensions.append(Dimension(shape[dim], strides[dim] * itemsize, step))
        result_stride *= 1 if dim in reduced else shape[dim]
    return _coalesced(_fastest_first(dimensions))


def _fastest_first(dimensions: list[Dimension]) -> list[Dimension]:
    ordered = list(dimensions)
    for moving in range(1, len(ordered)):
        here = moving
        for other in range(moving - 1, -1, -1):
            # An undecided pair is passed over; what is clearly faster changes places with it.
            if _is_faster(ordered[here], ordered[other]):
                ordered[other], ordered[here] = ordered[here], ordered[other]
                here = other
    return ordered


def _is_faster(one: Dimension, other: Dimension) -> bool:
    if one.is_reduced != other.is_reduced:
        return one.is_reduced
    for mine, theirs in ((one.result_stride, other.result_stride), (one.stride, other.stride)):
        if mine and theirs and mine != theirs:
            return mine < theirs
    return False


def _coalesced(dimensions: list[Dimension]) -> list[Dimension]:
    merged: list[Dimension] = []
    for dimension in dimensions:
        last = merged[-1] if merged else None
        if last is None or not _continues(last, dimension):
            merged.append(dimension)
        elif last.size == 1:
            merged[-1] = dimension
        else:
            merged[-1] = replace(last, size=last.size * dimension.size)
    return merged


def _continues(last: Dimension, following: Dimension) -> bool:
    if last.size == 1 or following.size == 1:
        return True
    return (last.size * last.stride, last.size * last.result_stride) == (
        following.stride,
        following.result_stride,
    )
