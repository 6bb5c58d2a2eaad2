"""How many kernels the operations launch whose number depends on sizes.

A launch here is one kernel of ATen; ``cudaMemcpyAsync``, the copy of dense memory of one type, and
``cudaMemsetAsync`` are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simcuda.indexing import LARGEST_OFFSET, parts
from simcuda.profile import MultiTensorTables

CHUNK_ELEMENTS = 65_536
"""Elements that one block of a multi-tensor kernel walks."""

NORMS_PER_CLEANUP = 400
"""Tensors whose partial norms one kernel adds up."""

INPUTS_PER_CAT = 128
"""Contiguous inputs that one concatenation kernel copies; half as many where one is not contiguous."""

CAT_DIMENSIONS = 4
"""Most dimensions that the concatenation kernel handles."""


def elementwise(elements: int, itemsize: int) -> int:
    """Kernels of an elementwise operation on contiguous memory.

    Args:
        elements: Elements of the result.
        itemsize: Bytes of one element, of the widest operand.
    """
    if not elements:
        return 0
    if (elements - 1) * itemsize < LARGEST_OFFSET and elements <= LARGEST_OFFSET:
        return 1
    return sum(1 for _ in parts((elements,), [(itemsize,)]))


def copy(elements: int, itemsize: int, *, as_bytes: bool) -> int:
    """Kernels of a copy within a device; none ``as_bytes``: of one type and dense in the same order."""
    return 0 if as_bytes else elementwise(elements, itemsize)


def concatenation(
    elements: Sequence[int], itemsize: int, *, dimensions: int, contiguous: bool = True, one_type: bool = True
) -> int:
    """Kernels of ``cat``, and of ``stack``, which concatenates views.

    Args:
        elements: Elements of each input.
        itemsize: Bytes of one element of the result.
        dimensions: Dimensions of the result.
        contiguous: Whether every input is contiguous.
        one_type: Whether all inputs have the type of the result.
    """
    batched = len(elements) > 1 and one_type and dimensions <= CAT_DIMENSIONS
    if batched and sum(elements) < LARGEST_OFFSET:
        batch = INPUTS_PER_CAT if contiguous else INPUTS_PER_CAT // 2
        first = next((place for place, count in enumerate(elements) if count), len(elements))
        # Batches of empty inputs are skipped only before the first that has elements.
        return -(-len(elements) // batch) - first // batch if first < len(elements) else 0
    as_bytes = one_type and contiguous and dimensions == 1
    return sum(copy(count, itemsize, as_bytes=as_bytes) for count in elements)


def multi_tensor(
    elements: Iterable[int], tables: MultiTensorTables, *, depth: int, scalars: bool = False
) -> int:
    """Kernels of one multi-tensor operation.

    A kernel takes chunks until it is full of chunks, or full of tensors at the end of a tensor's last chunk;
    a tensor cut off in between goes on as the first of the next kernel. Empty tensors take no place.

    Args:
        elements: Elements of each tensor of one list.
        tables: How much a kernel takes.
        depth: Lists of tensors walked side by side, results of an out-of-place operation included.
        scalars: Whether each tensor comes with a scalar of its own.
    """
    most_tensors = (tables.tensors_with_scalars if scalars else tables.tensors)[depth - 1]
    launches = tensors = blocks = 0
    for count in elements:
        chunks = -(-count // CHUNK_ELEMENTS)
        tensors += 1 if chunks else 0
        while chunks:
            taken = min(chunks, tables.blocks - blocks)
            chunks -= taken
            blocks += taken
            if blocks == tables.blocks or (tensors == most_tensors and not chunks):
                launches += 1
                blocks = 0
                tensors = 1 if chunks else 0
    return launches + (1 if blocks else 0)


@dataclass(frozen=True)
class ForeachNorm:
    """What ``_foreach_norm`` costs for tensors of one device and type.

    Attributes:
        launches: One kernel to clear the partial norms, the multi-tensor kernels, those that add up the partial
            norms, and one for the zero that stands for the norm of each empty tensor.
        workspace_bytes: The partial norms: for every tensor as many as the largest has chunks.
    """

    launches: int
    workspace_bytes: int


def foreach_norm(
    elements: Sequence[int], tables: MultiTensorTables, *, accumulator_bytes: int
) -> ForeachNorm:
    """The fast path of ``_foreach_norm``; ``accumulator_bytes`` is the width of the type it adds up in."""
    chunks = -(-max(elements, default=0) // CHUNK_ELEMENTS)
    clear = 1 if chunks else 0
    clean_up = -(-len(elements) // NORMS_PER_CLEANUP)
    zeros = sum(1 for count in elements if not count)
    return ForeachNorm(
        launches=clear + multi_tensor(elements, tables, depth=1) + clean_up + zeros,
        workspace_bytes=len(elements) * chunks * accumulator_bytes,
    )
