"""One operation as the dispatcher sees it, and what a rule says it costs on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from torch import Tensor

from simcuda.device.storages import HOST, Storages
from simcuda.profile import Profile

MEMORY = ("allocations", "largest_allocation", "peak_bytes", "peak_allocated_bytes")
"""The metrics that depend on workspaces."""

TRIALS = dict.fromkeys(
    (
        *(
            "syncs",
            "stream_syncs",
            "event_syncs",
            "device_syncs",
            "drains",
            "implicit_syncs",
            "launches",
        ),
        *MEMORY,
    ),
    (0, inf),
)
"""The slack of what is tried in all ways that a library has: each is timed, with waits."""

ANYTHING = dict.fromkeys(("launches", "aten_launches", *MEMORY), (inf, inf))
"""The slack of an operation of which no more is known than its results."""


@dataclass(frozen=True, slots=True)
class LibraryWork:
    """The launches of a library within one operation, which it chooses itself.

    Attributes:
        usual: As many kernels as are counted.
        slack: How far below and above what is counted each modelled metric can be.
        is_cublas: Whether it takes the workspace of cuBLAS.
        is_convolution: Whether cuDNN may try its plans, the first time.
    """

    usual: int
    slack: Mapping[str, tuple[float, float]]
    is_cublas: bool = False
    is_convolution: bool = False


@dataclass(frozen=True, slots=True)
class OpCost:
    """The work of one operation on a CUDA device, besides making its results.

    Attributes:
        launches: Kernels of ATen's own.
        waits: Times the host waits for the current stream.
        copies: Each copy as its kind (``h2d``, ``d2h``, ``d2d``) and its bytes.
        temporaries: Bytes allocated before the results, each freed at the end of the operation.
        workspaces: Bytes allocated after the results, each freed at the end of the operation.
        passing: Bytes allocated together at the beginning, and freed before anything else is.
        library: What a library does in it; None where none takes part.
    """

    launches: int = 0
    waits: int = 0
    copies: tuple[tuple[str, int], ...] = ()
    temporaries: tuple[int, ...] = ()
    workspaces: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()
    library: LibraryWork | None = None

    def __add__(self, other: OpCost) -> OpCost:
        """The cost of both, one after the other; what either allocates is held until both are done."""
        if other is FREE:
            return self
        return OpCost(
            self.launches + other.launches,
            self.waits + other.waits,
            self.copies + other.copies,
            self.temporaries + other.temporaries,
            self.workspaces + other.workspaces,
            self.passing + other.passing,
            self.library or other.library,
        )


FREE = OpCost()
"""Nothing happens on the device."""

ONE_KERNEL = OpCost(launches=1)

# Kept, because building ``list | tuple`` takes longer than asking.
_SEQUENCES = (list, tuple)


@dataclass(slots=True)
class OperationCall:
    """One operation with its arguments and, once it has run on the CPU, its result.

    Attributes:
        op: Name with overload, such as ``aten.sum.dim_IntList``.
        names: Names of the schema's arguments, in order.
        args: Positional arguments.
        kwargs: Arguments by name.
        inputs: Every tensor among them, in order, those in lists included.
        outputs: Every tensor of the result.
        storages: The device of every tensor.
        profile: The kind of device.
    """

    op: str
    names: Sequence[str]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    inputs: list[Tensor]
    outputs: list[Tensor]
    storages: Storages
    profile: Profile

    @property
    def first(self) -> Any:
        """The first argument, mostly the tensor that it is of."""
        return self.args[0]

    @property
    def result(self) -> Tensor:
        """The first tensor of the result."""
        return self.outputs[0]

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument by its name in the schema, however it was passed."""
        # Autograd passes most arguments by position, Python code many by name.
        if name in self.kwargs:
            return self.kwargs[name]
        position = self.names.index(name) if name in self.names else len(self.args)
        return self.args[position] if position < len(self.args) else default

    def is_on_host(self, tensor: Tensor) -> bool:
        """Return True if a tensor is in host memory."""
        return self.storages.device_of(tensor) == HOST


def all_tensors_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors among the arguments of an operation and in its lists, which hold no further lists."""
    # Runs for every operation: a loop over flat lists is faster than the recursion of ``tensors_in``.
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, _SEQUENCES):
            found += [tensor for tensor in value if isinstance(tensor, Tensor)]
    return found


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among values and within lists and tuples of theirs."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, _SEQUENCES):
            yield from tensors_in(value)
