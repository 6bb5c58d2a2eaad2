"""How an iteration is cut up so that every byte offset within a part fits in 31 bits, as kernels require."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LARGEST_OFFSET = 2**31 - 1

Shape = tuple[int, ...]


def fits_32_bits(shape: Shape, operands: Sequence[Shape]) -> bool:
    """Whether one kernel can index all of ``shape``; each operand is its strides in bytes."""
    elements = 1
    for size in shape:
        elements *= size
    return elements <= LARGEST_OFFSET and all(
        _extent(shape, strides) <= LARGEST_OFFSET for strides in operands
    )


def parts(shape: Shape, operands: Sequence[Shape]) -> Iterator[Shape]:
    """The shapes that each get a kernel: the dimension that reaches furthest is halved until all fit."""
    if fits_32_bits(shape, operands):
        yield shape
        return
    widest = _widest_dimension(shape, operands)
    half = shape[widest] // 2
    for size in (half, shape[widest] - half):
        yield from parts((*shape[:widest], size, *shape[widest + 1 :]), operands)


def _extent(shape: Shape, strides: Shape) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _widest_dimension(shape: Shape, operands: Sequence[Shape]) -> int:
    reach = [max((size - 1) * strides[dim] for strides in operands) for dim, size in enumerate(shape)]
    # The last of equals: the search runs from the outermost dimension inwards.
    return max(range(len(shape)), key=lambda dim: (reach[dim], dim))
