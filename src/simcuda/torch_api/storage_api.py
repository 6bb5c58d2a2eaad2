"""What a storage answers about its device, and how deep copies, pickling and ``torch.load`` copy it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import UntypedStorage

from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.patches import Patches

_new_storage: Callable[[int], UntypedStorage] = UntypedStorage
_resize: Callable[[UntypedStorage, int], UntypedStorage] = UntypedStorage.resize_
_write_file: Callable[..., None] = UntypedStorage._write_file
_Device = torch.device | str | int | None


class StorageApi:
    """Replaces attributes of ``torch.UntypedStorage``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        patches.set(
            UntypedStorage,
            device=property(self.device),
            is_cuda=property(lambda storage: self.index_of(storage) != HOST),
            clone=lambda storage: self.copy(storage, self.index_of(storage)),
            resize_=lambda storage, nbytes: self.resize(storage, nbytes),  # noqa: PLW0108 - a bound method would not bind
            cpu=lambda storage: self.to(storage, "cpu"),
            cuda=lambda storage, device=None, non_blocking=False: self.to(storage, device, non_blocking),
            _write_file=lambda storage, *how: _write_file(self.to(storage, "cpu"), *how),
            to=lambda storage, *, device, non_blocking=False: self.to(storage, device, non_blocking),
        )

    def index_of(self, storage: UntypedStorage) -> int:
        """Index of a storage's device, or ``HOST``."""
        tag = self.machine.storages.of_storage(storage)
        return HOST if tag is None else tag.device

    def device(self, storage: UntypedStorage) -> torch.device:
        """The device a storage is on."""
        index = self.index_of(storage)
        return torch.device("cpu") if index == HOST else self.machine.devices[index]

    def resize(self, storage: UntypedStorage, nbytes: int) -> UntypedStorage:
        """Change a storage's size in place, as sharded parameters do to give their memory back."""
        _resize(storage, nbytes)
        tag = self.machine.storages.of_storage(storage)
        if tag is not None:
            self.machine.resized(tag, nbytes)
        return storage

    def to(self, storage: UntypedStorage, device: _Device, non_blocking: bool = False) -> UntypedStorage:
        """The storage on a device, itself where it is there already."""
        target = torch.device("cuda", device) if isinstance(device, int) else torch.device(device or "cuda")
        index = self.machine.index(target)
        return storage if index == self.index_of(storage) else self.copy(storage, index, non_blocking)

    def copy(self, storage: UntypedStorage, device: int, non_blocking: bool = False) -> UntypedStorage:
        """A copy of a storage on a device or on ``HOST``."""
        made = _new_storage(storage.nbytes())
        if device == HOST:
            self.machine.place_on_host(made)
        else:
            self.machine.place(made, device)
        made.copy_(storage, non_blocking)
        return made
