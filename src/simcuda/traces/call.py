"""One operation of a trace: its arguments as recorded, and what the CUDA runtime did within it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from simcuda.basis import operations

DTYPES = {text: getattr(torch, name) for text, name in operations("types").items()}
"""Types by their name in C++, as traces write them."""


KINDS = ("d2d", "d2h", "h2d", "p2p")
"""Kinds of copies."""

METRICS = ("launches", "copies", "bytes", "waits", "allocations", "allocated_bytes")
"""What of a recorded cost is compared with a simulated one."""


def by_metric(
    launches: int,
    copies: Mapping[str, tuple[int, int]],
    waits: tuple[int, int, int],
    allocations: Collection[int],
) -> dict[str, Any]:
    """A cost by each of ``METRICS``: a number, or a tuple by kind; ``copies`` has their number and bytes."""
    made = {kind: each for kind, each in copies.items() if each[0]}
    return {
        "launches": launches,
        "copies": tuple((kind, count) for kind, (count, _) in made.items()),
        "bytes": tuple((kind, nbytes) for kind, (_, nbytes) in made.items()),
        "waits": waits,
        "allocations": len(allocations),
        "allocated_bytes": tuple(sorted(allocations)),
    }


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """An argument that the trace calls a tensor; on which device it was is not recorded.

    Attributes:
        shape: Its sizes.
        dtype: The type's name in C++, as the trace writes it: ``float``, ``c10::BFloat16``, ``long int``.
        strides: In elements.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]


Argument = RecordedTensor | tuple["Argument", ...] | str | None
"""A tensor, a list of tensors, the text of a scalar or a list of scalars, or nothing that was recorded.

Traces write an absent tensor and an optional that holds nothing alike: both are None. Of the tensors in a
list no trace tells the type: their ``dtype`` is empty.
"""


@dataclass(frozen=True, slots=True)
class RecordedCopy:
    """A copy that the device made.

    Attributes:
        kind: ``h2d``, ``d2h``, ``d2d`` or ``p2p``.
        nbytes: Bytes copied.
        pageable: Whether the memory of the host was pageable; False for pinned memory and within devices.
    """

    kind: str
    nbytes: int
    pageable: bool


@dataclass(slots=True)
class RecordedCost:
    """Return the runtime calls on the op's thread within an op, including its inner ops'.

    Attributes:
        kernels: Names of the kernels, in the order of their launches.
        copies: Copies in the order of their calls; copies within the host are left out.
        memsets: Calls of ``cudaMemsetAsync`` and its kin.
        stream_syncs: Calls of ``cudaStreamSynchronize``.
        event_syncs: Calls of ``cudaEventSynchronize``.
        device_syncs: Calls of ``cudaDeviceSynchronize``.
        implicit_syncs: Calls in which the host may wait, although that is not what they are for:
            ``cudaMalloc``.
        allocations: Bytes of each block that the allocator gave, on any device: the request rounded up to
            512, or more, for large blocks may carry up to 1 MiB of slack. None if memory was not recorded, or
            if a clock of whole microseconds leaves open which op made one of them.
        waited: Microseconds that the host spent in its waits.
    """

    kernels: list[str] = field(default_factory=list)
    copies: list[RecordedCopy] = field(default_factory=list)
    memsets: int = 0
    stream_syncs: int = 0
    event_syncs: int = 0
    device_syncs: int = 0
    implicit_syncs: int = 0
    allocations: list[int] | None = None
    waited: float = 0.0

    @property
    def waits(self) -> tuple[int, int, int]:
        """Waits for streams, events and devices."""
        return self.stream_syncs, self.event_syncs, self.device_syncs

    @property
    def values(self) -> dict[str, Any]:
        """Each of ``METRICS`` as something that can be compared and hashed."""
        sizes = {
            kind: [copy.nbytes for copy in self.copies if copy.kind == kind]
            for kind in KINDS
        }
        copies = {kind: (len(each), sum(each)) for kind, each in sizes.items()}
        return by_metric(len(self.kernels), copies, self.waits, self.allocations or ())


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """An op that was outermost in ATen on its thread.

    Wrappers of autograd, annotations and custom ops are not ops of ATen: those within them are outermost.

    Attributes:
        op: Its name without overload, such as ``aten::add``.
        arguments: In the order of its schema; None where shapes, types, strides or scalars were not recorded.
        cost: What the runtime did within it.
        inner: Names of the ops within it in the order of their start: they tell which overload or branch ran.
        parent: Name of the nearest event around it that is no annotation, such as ``AddmmBackward0``; empty
            without one.
    """

    op: str
    arguments: tuple[Argument, ...] | None
    cost: RecordedCost
    inner: list[str] = field(default_factory=list)
    parent: str = ""


@dataclass(frozen=True, order=True)
class RecordedSite:
    """A place in Python code and what the runtime did for it.

    Attributes:
        file: As the trace names it: mostly relative to an entry of ``sys.path``.
        line: The line that ran, or the first of the function where only functions were recorded.
        function: Its name; of what ran without Python, such as backward passes, the op, with the file
            ``<library>``.
        what: A metric, as in ``simcuda.Site``, or ``launches`` or ``memsets``.
        count: How often.
        waited: Microseconds that the host spent in waits.
        nbytes: Bytes that were copied or allocated.
    """

    file: str
    line: int
    function: str
    what: str
    count: int
    waited: float
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of one process.

    Attributes:
        path: The file.
        devices: Names of its GPUs; empty in traces that do not tell.
        cuda: Version of the CUDA runtime, such as ``12.4``; empty in older traces.
        has_memory: Whether the allocator's events were.
        has_stacks: Whether Python's stacks were.
        has_lines: Whether these name the lines that ran, not only their functions.
        calls: The ops that were outermost in ATen, by thread and start.
        outside: What the runtime did outside of ATen's ops, by the nearest event around it, such as a custom
            op; by ``""`` where there is none.
        sites: Places in Python code; empty without stacks.
        left_out: What was not attributed, and why.
        sums: What was added up to see that no event is lost, such as ``launches 245, with their kernel 245``.
    """

    path: str
    devices: tuple[str, ...]
    cuda: str
    has_memory: bool
    has_stacks: bool
    has_lines: bool
    calls: tuple[RecordedCall, ...]
    outside: dict[str, RecordedCost] = field(default_factory=dict)
    sites: tuple[RecordedSite, ...] = ()
    left_out: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
