"""How many kernels an operation launches, if that depends on sizes.

A launch here is one kernel of ATen; ``cudaMemcpyAsync``, the copy of dense memory of one type, and
``cudaMemsetAsync`` are none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import torch

from simcuda.cost.tensor_iterator import LARGEST_OFFSET, parts
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
    # Almost always: no iterator needs to be built.
    if (elements - 1) * itemsize < LARGEST_OFFSET and elements <= LARGEST_OFFSET:
        return 1
    return sum(1 for _ in parts((elements,), [(itemsize,)]))


def kernels_over(tensor: torch.Tensor) -> int:
    """Kernels of an elementwise operation with this result.

    Its elements are taken to be the widest among those that are read and written.
    """
    return elementwise(tensor.numel(), tensor.element_size())


def concatenation(
    elements: Sequence[int],
    itemsize: int,
    *,
    dimensions: int,
    outermost: bool,
    contiguous: bool = True,
    converted: Collection[int] = (),
) -> tuple[int, list[int]]:
    """What ``cat`` does, and ``stack``, which concatenates views.

    Args:
        elements: Elements of each input.
        itemsize: Bytes of one element of the result.
        dimensions: Dimensions of the result.
        outermost: Whether the inputs follow each other in the result's memory.
        contiguous: Whether every input is contiguous.
        converted: Positions of the inputs of another type than the result.

    Returns:
        The kernels, and the positions of the inputs that are copied as bytes, each without a kernel.
    """
    fits = dimensions <= CAT_DIMENSIONS and sum(elements) < LARGEST_OFFSET
    if len(elements) > 1 and not converted and fits:
        batch = INPUTS_PER_CAT if contiguous else INPUTS_PER_CAT // 2
        # Batches of empty inputs are skipped only before the first that has elements.
        first = next((place for place, count in enumerate(elements) if count), None)
        return (0 if first is None else -(-len(elements) // batch) - first // batch), []
    # One by one: an input that goes to one run of memory, in its own type, is a copy of bytes.
    is_dense = contiguous and (outermost or len(elements) == 1)
    as_bytes = [
        place for place, count in enumerate(elements) if is_dense and count and place not in converted
    ]
    return sum(
        elementwise(n, itemsize) for place, n in enumerate(elements) if place not in as_bytes
    ), as_bytes


def multi_tensor(
    elements: Iterable[int], tables: MultiTensorTables, *, depth: int, scalars: bool = False
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
    most_tensors = (tables.tensors_with_scalars if scalars else tables.tensors)[depth - 1]
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


@dataclass(frozen=True)
class ForeachNorm:
    """What ``_foreach_norm`` costs for tensors of one device and type.

    Attributes:
        launches: One kernel to clear the partial norms, the multi-tensor kernels, those that add up the
            partial norms, and one for the zero that stands for the norm of each empty tensor.
        workspace_bytes: The partial norms: for every tensor as many as the largest has chunks.
        spare_results: Results that were allocated and are dropped at the end, one for each empty tensor.
    """

    launches: int
    workspace_bytes: int
    spare_results: int


def foreach_norm(
    elements: Sequence[int], tables: MultiTensorTables, *, accumulator_bytes: int
) -> ForeachNorm:
    """The fast path of ``_foreach_norm``; ``accumulator_bytes`` is the width of the type it adds up in."""
    chunks = -(-max(elements, default=0) // CHUNK_ELEMENTS)
    # The partial norms are zeros of their own, which one kernel fills.
    clear = 1 if chunks else 0
    clean_up = -(-len(elements) // NORMS_PER_CLEANUP)
    zeros = sum(1 for count in elements if not count)
    return ForeachNorm(
        launches=clear + multi_tensor(elements, tables, depth=1) + clean_up + zeros,
        workspace_bytes=len(elements) * chunks * accumulator_bytes,
        spare_results=zeros,
    )
