"""Keep the device and the block of each tensor's memory.

Knowledge is kept for storages, which views share, and is dropped with them by weak references. Addresses
recur as soon as memory is freed, so a storage is known to the rest of the simulation by a serial number.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import torch
from torch import Tensor

from simcuda.device.allocator import MemoryBlock
from simcuda.device.dispatch_key import unwatched

HOST = -1
"""The device index of host memory."""

NO_STORAGE = (NotImplementedError, RuntimeError)
"""What asking a sparse tensor or a functorch wrapper for its storage raises."""

# The dense tensors that a sparse one is made of; their storages have its device.
_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
_PARTS = {torch.sparse_coo: ("_indices", "_values"), **_COMPRESSED}


def is_sparse(tensor: Tensor) -> bool:
    """Return True if a tensor is of one of PyTorch's sparse layouts, compressed ones among them."""
    return tensor.layout in _PARTS


@unwatched
def parts_of(tensor: Tensor) -> tuple[Tensor, ...]:
    """The dense tensors that a sparse one is made of, its values last; none for any other."""
    with torch.no_grad():
        return tuple(getattr(tensor, name)() for name in _PARTS.get(tensor.layout, ()))


class Tag(weakref.ref[torch.UntypedStorage]):
    """One storage: its device and its size.

    Attributes:
        key: Address of the storage object, valid while it lives.
        serial: Its number, never used again.
        device: Index of its device, or ``HOST``.
        nbytes: Bytes that were asked for.
        block: The block on the device; None on the host and for no bytes.
        pinned: Whether it is page-locked host memory.
        floating: Made by C++ code within an operation, which calls every simulated tensor a CPU tensor: it
            belongs to the first device it meets.
        owed: Kernels that made a floating one, to be charged to its device.
    """

    __slots__ = (
        "block",
        "device",
        "floating",
        "key",
        "nbytes",
        "owed",
        "pinned",
        "serial",
    )

    key: int
    serial: int
    device: int
    nbytes: int
    block: MemoryBlock | None
    pinned: bool
    floating: bool
    owed: int


def device_of_tag(tag: Tag | None) -> int:
    """Return the index of the device of a storage; one that was made elsewhere is the host's."""
    return HOST if tag is None else tag.device


class Storages:
    """Every storage that was made on a device, or on the host, within the simulation.

    When one is gone, ``released`` is called with its tag.

    Attributes:
        tags: The tag of every storage, by its address.
    """

    def __init__(self, released: Callable[[Tag], None]) -> None:
        self.tags: dict[int, Tag] = {}
        self._released = released
        self._gone = cast("Callable[[Any], None]", self._forget)
        self._serials = count(1)

    def of(self, tensor: Tensor) -> Tag | None:
        """The tag of a tensor's storage; None for host tensors that were made elsewhere."""
        try:
            return self.tags.get(tensor.untyped_storage()._cdata)
        except NO_STORAGE:
            if is_sparse(tensor):
                return self.of(parts_of(tensor)[-1])
            functorch = torch._C._functorch
            if not functorch.is_functorch_wrapped_tensor(tensor):
                return None
            return self.of(functorch.get_unwrapped(tensor))
        except ValueError:
            # A parameter of a lazy module, which answers little before its first use.
            with torch._C.DisableTorchFunctionSubclass():
                return self.tags.get(tensor.untyped_storage()._cdata)

    def device_of(self, tensor: Tensor) -> int:
        """Return the index of a tensor's device, or ``HOST``."""
        return device_of_tag(self.of(tensor))

    def add(
        self,
        storage: torch.UntypedStorage,
        device: int,
        nbytes: int,
        block: MemoryBlock | None = None,
        *,
        pinned: bool = False,
        floating: bool = False,
    ) -> Tag:
        """Remember a new storage until it is gone; ``Tag`` explains what is known of it."""
        # The tag is the weak reference itself: one object for each storage instead of two.
        tag = Tag(storage, self._gone)
        tag.key = storage._cdata
        tag.serial = next(self._serials)
        tag.device = device
        tag.nbytes = nbytes
        tag.block = block
        tag.pinned = pinned
        tag.floating = floating
        tag.owed = 0
        self.tags[tag.key] = tag
        return tag

    def _forget(self, tag: Tag) -> None:
        # Another storage may have the address by now.
        if self.tags.get(tag.key) is tag:
            del self.tags[tag.key]
        self._released(tag)
