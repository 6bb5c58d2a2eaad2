"""Model the launches and workspaces of ATen's reduction kernels.

One kernel reduces everything. Where a thread would read 256 values or more and there are few results, the
values of one result are split over several thread blocks, which meet in global memory: a buffer for their
partial results and a counter for each column of blocks, cleared by a memset. The rules are those of
``setReduceConfig`` in ATen/native/cuda/Reduce.cuh of PyTorch 2.13.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from simcuda.costs.call import FREE, OpCost
from simcuda.costs.launches import Dimension, Shape, iterate, parts
from simcuda.profile import Profile

THREADS = 512
WARP = 32
FEW_VALUES = 16
MANY_VALUES = 256
COUNTER_BYTES = 4


@dataclass(frozen=True)
class Arithmetic:
    """The properties of a reduction that decide its layout on the device.

    Attributes:
        family: ``sum`` (sum, prod, mean and their nan variants), ``norm``, ``extremum`` (max, min, amax, amin
            over everything or without indices), ``logical`` (any, all), ``aminmax``, ``argument`` (argmax,
            argmin, and max, min along a dimension) or ``moment`` (var, std, with and without the mean).
        itemsize: Bytes of an element that is read; 16 for complex numbers in double precision.
        is_half: Whether the elements are half or bfloat16, which add up in single precision.
    """

    family: str
    itemsize: int
    is_half: bool = False

    @property
    def partial_bytes(self) -> int:
        """Bytes of a partial result."""
        # Half precision adds up in floats.
        accumulator = 4 if self.is_half else self.itemsize
        return {
            "sum": accumulator,
            "norm": accumulator,
            # Of truth values too, as an H200 showed: they are kept in the type that is read.
            **dict.fromkeys(("extremum", "logical"), self.itemsize),
            "aminmax": 2 * self.itemsize,
            # A value and its 64-bit index, aligned to the index.
            "argument": 16,
            # Mean and sum of squares, a 32-bit and a floating count, aligned to the widest.
            "moment": 4 * accumulator,
        }[self.family]


def reduce_all(elements: int, how: Arithmetic, profile: Profile) -> OpCost:
    """Reduce all elements of dense memory to one result."""
    return reduction((elements,), (1,), (0,), how, profile)


@lru_cache(maxsize=4096)
def reduction(
    shape: Shape,
    strides: Shape,
    reduced: tuple[int, ...],
    how: Arithmetic,
    profile: Profile,
    result_itemsize: int | None = None,
) -> OpCost:
    """Reduce the dimensions ``reduced`` of an input with these sizes and strides, in elements.

    ``result_itemsize`` is that of the result's elements, by default the input's. An input without elements
    needs no reduction. The input is taken to begin at an address that suits every vector width.
    """
    if 0 in shape:
        return FREE
    dimensions = iterate(
        shape, strides, reduced, how.itemsize, result_itemsize or how.itemsize
    )
    operands = [
        tuple(d.result_stride for d in dimensions),
        tuple(d.stride for d in dimensions),
    ]
    # An input that 32-bit offsets cannot reach is reduced part by part.
    sizes = list(parts(tuple(d.size for d in dimensions), operands))
    workspaces: list[int] = []
    for part in sizes:
        cut = [replace(d, size=size) for d, size in zip(dimensions, part, strict=True)]
        workspaces += _workspaces(cut, how, profile)
    results = prod(d.size for d in dimensions if not d.is_reduced)
    # Several kernels add up to one result, for which half precision is too narrow: it has a buffer.
    accumulator = (4 * results,) if how.is_half and len(sizes) > 1 else ()
    return OpCost(len(sizes), workspaces=(*accumulator, *workspaces))


def _workspaces(
    dimensions: list[Dimension], how: Arithmetic, profile: Profile
) -> list[int]:
    """Bytes of the partial results and of the counters of one kernel; nothing where blocks need not meet."""
    inner = [d for d in dimensions if d.is_reduced]
    outer = [d for d in dimensions if not d.is_reduced]
    # Most threads of a block.
    threads = THREADS // 2 if how.itemsize == 16 else THREADS
    values, results = prod(d.size for d in inner), prod(d.size for d in outer)
    reduces_fastest = not outer or bool(
        inner and dimensions[0].stride < outer[0].stride
    )
    if reduces_fastest:
        # The threads of a row share one result.
        width, height = _block(values, results, threads)
        grid = results
        results_per_row = results
        threads_per_result = width * height
    else:
        # Neighbouring results that one thread computes: as many as stay aligned, at most 4.
        fastest = outer[0]
        vector = 4 if fastest.stride == how.itemsize else 1
        for number in (
            fastest.size,
            *(d.stride // how.itemsize for d in dimensions if d is not fastest),
        ):
            while number % vector:
                vector //= 2
        width, height = _block(results // vector, values, threads // vector)
        grid = -(-(results // vector) // width)
        results_per_row = results * width * vector
        threads_per_result = height
    # Several blocks share a result where each thread would read many values alone, and the device has room.
    values_per_thread = -(-values // threads_per_result)
    resident = profile.multiprocessors * (
        profile.threads_per_multiprocessor // (width * height)
    )
    if values_per_thread < MANY_VALUES or grid > resident:
        return []
    blocks = max(
        min(-(-resident // grid), -(-values_per_thread // FEW_VALUES)),
        -(-values_per_thread // MANY_VALUES),
    )
    if blocks == 1:
        return []
    return [how.partial_bytes * results_per_row * blocks, COUNTER_BYTES * grid]


def _block(across: int, along: int, threads: int) -> tuple[int, int]:
    """Width and height of a thread block: powers of 2, a warp wide first, then as tall as there is work."""
    widest, tallest = (
        threads if number >= threads else 1 << (max(number, 1).bit_length() - 1)
        for number in (across, along)
    )
    width = min(widest, WARP)
    height = min(tallest, threads // width)
    return min(widest, threads // height), height
