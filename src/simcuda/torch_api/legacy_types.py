"""Types of tensors from before there were dtypes, such as ``torch.cuda.FloatTensor``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from simcuda.device.machine import Machine
from simcuda.torch_api.factories import Factories, read_elements
from simcuda.torch_api.patches import Patches
from simcuda.torch_api.refusals import NotSimulatedError
from simcuda.torch_api.tensor_api import DeviceLike, device_of

_KIND: Any = type(torch.FloatTensor)
DEFAULTS = "torch.set_default_dtype() and torch.set_default_device()"
KEPT = ("dtype", "layout", "is_cuda", "is_sparse", "__module__", "__doc__")
"""What a type that stands in for one of torch has of it."""


class LegacyType(type):
    """A type whose tensors are all tensors of one dtype on one kind of device."""

    make: Callable[..., Tensor]
    original: Any
    dtype: torch.dtype
    layout: torch.layout
    is_cuda: bool
    is_sparse: bool

    def __call__(cls, *data: Any, **how: Any) -> Tensor:
        """Make a tensor of sizes, of Python data, or of another tensor's memory."""
        return cls.make(cls, *data, **how)

    def __instancecheck__(cls, value: object) -> bool:
        """Whether ``value`` is a tensor of this type."""
        return isinstance(value, Tensor) and value.dtype == cls.dtype and value.is_cuda == cls.is_cuda


class LegacyTypes:
    """Replaces the types in ``torch`` and ``torch.cuda``, which C++ code makes for real devices alone."""

    def __init__(self, machine: Machine, factories: Factories) -> None:
        self._machine = machine
        self._factories = factories

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        makers: dict[Any, Callable[..., Tensor]] = {torch: self._on_host, torch.cuda: self._on_device}
        for module, make in makers.items():
            for original in [value for value in vars(module).values() if type(value) is _KIND]:
                known = {name: getattr(original, name) for name in KEPT}
                known |= {"original": original, "make": staticmethod(make)}
                patches.set(module, **{original.__name__: LegacyType(original.__name__, (), known)})
        set_original: Any = torch._C._set_default_tensor_type

        def set_default(kind: Any) -> None:
            if kind.is_cuda:
                message = f"A default type on a simulated CUDA device does not run; use {DEFAULTS}"
                raise NotSimulatedError(message)
            set_original(getattr(kind, "original", kind))

        patches.set(torch._C, _set_default_tensor_type=set_default)

    def _on_host(self, kind: LegacyType, *data: Any, **how: Any) -> Tensor:
        if data and isinstance(data[0], list | tuple):
            read_elements(data[0])
        if data and isinstance(data[0], Tensor):
            _check(kind, data[0])
        made: Tensor = kind.original(*data, **how)
        self._machine.settle((self._machine.storages.of(made),))
        return made

    def _on_device(self, kind: LegacyType, *data: Any, device: DeviceLike | None = None) -> Tensor:
        where = torch.device("cuda") if device is None else device_of(device)
        if not data or isinstance(data[0], int | torch.Size):
            return torch.empty(*(data or (0,)), dtype=kind.dtype, device=where)
        (values,) = data
        if isinstance(values, Tensor):
            _check(kind, values)
            return values.detach()
        return self._factories.tensor(values, dtype=kind.dtype, device=where)


def _check(kind: LegacyType, tensor: Tensor) -> None:
    if not isinstance(tensor, kind):
        raise TypeError(f"expected {kind.__module__}.{kind.__name__} (got {tensor.type()})")
