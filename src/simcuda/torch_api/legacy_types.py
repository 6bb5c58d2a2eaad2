"""Types of tensors from before there were dtypes, such as ``torch.cuda.FloatTensor``."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from simcuda.device.machine import Machine
from simcuda.torch_api.patches import Patches
from simcuda.torch_api.python_data import PythonData, read_elements
from simcuda.torch_api.refusals import NotSimulatedError
from simcuda.torch_api.tensor_api import DeviceLike, device_of

_KIND: Any = type(torch.FloatTensor)
DEFAULTS = "torch.set_default_dtype() and torch.set_default_device()"


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

    def __init__(self, machine: Machine, python_data: PythonData) -> None:
        self._machine = machine
        self._python_data = python_data

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        for module, make in ((torch, self._on_host), (torch.cuda, self._on_device)):
            patches.set(module, **{t.__name__: _stand_in(t, make) for t in _types_in(module)})
        patches.set(torch._C, _set_default_tensor_type=_set_default(torch._C._set_default_tensor_type))

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
        return self._python_data.tensor(values, dtype=kind.dtype, device=where)


def _types_in(module: ModuleType) -> list[Any]:
    return [value for value in vars(module).values() if type(value) is _KIND]


def _stand_in(original: Any, make: Callable[..., Tensor]) -> LegacyType:
    names = ("dtype", "layout", "is_cuda", "is_sparse", "__module__", "__doc__")
    kept = {name: getattr(original, name) for name in names}
    return LegacyType(original.__name__, (), {**kept, "original": original, "make": staticmethod(make)})


def _check(kind: LegacyType, tensor: Tensor) -> None:
    if not isinstance(tensor, kind):
        raise TypeError(f"expected {kind.__module__}.{kind.__name__} (got {tensor.type()})")


def _set_default(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def set_default(kind: Any) -> None:
        if kind.is_cuda:
            raise NotSimulatedError(f"A default type on a simulated CUDA device does not run; use {DEFAULTS}")
        original(getattr(kind, "original", kind))

    return set_default
