"""Tensors of Python data: made on the host, then copied to the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from simcuda.torch_api.patches import Patches
from simcuda.torch_api.tensor_api import DeviceLike, TensorApi, as_method, device_of

SPARSE = (
    *("sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor"),
    *("sparse_bsr_tensor", "sparse_bsc_tensor"),
)


class PythonData:
    """Replaces ``torch.tensor`` and its kin, whose C++ code needs a real device for a device."""

    def __init__(self, tensors: TensorApi) -> None:
        self._tensors = tensors
        self._make_tensor = torch.tensor
        self._make_as_tensor = torch.as_tensor
        self._make_asarray = torch.asarray

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        patches.set(torch, tensor=self.tensor, as_tensor=self.as_tensor, asarray=self.asarray)
        patches.set(torch.Tensor, new_tensor=as_method(self.new_tensor))
        patches.set(torch, **{name: self._sparse(getattr(torch, name)) for name in SPARSE})

    def tensor(
        self,
        data: Any,
        *,
        dtype: torch.dtype | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        """``torch.tensor``: made on the host, then copied to the device."""
        if isinstance(data, Tensor):
            target = self._tensors.device(data) if device is None else device_of(device)
            made = self._tensors.to(data.detach(), target, dtype=dtype, copy=True)
        else:
            read_elements(data)
            made = self._make_tensor(data, dtype=dtype, device="cpu")
            made = self._tensors.to(made, _default_device() if device is None else device)
        if pin_memory:
            made = self._tensors.pin_memory(made)
        return made.requires_grad_(requires_grad)

    def new_tensor(self, tensor: Tensor, data: Any, **kwargs: Any) -> Tensor:
        """``torch.Tensor.new_tensor``."""
        asked: dict[str, Any] = {"dtype": tensor.dtype, "device": self._tensors.device(tensor)}
        return self.tensor(data, **(asked | {name: v for name, v in kwargs.items() if v is not None}))

    def as_tensor(
        self, data: Any, dtype: torch.dtype | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """``torch.as_tensor``."""
        if isinstance(data, Tensor):
            return self._tensors.to(data, device=device, dtype=dtype)
        read_elements(data)
        made = self._make_as_tensor(data, dtype=dtype, device="cpu")
        return self._tensors.to(made, _default_device() if device is None else device)

    def asarray(
        self,
        obj: Any,
        *,
        dtype: torch.dtype | None = None,
        device: DeviceLike | None = None,
        copy: bool | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """``torch.asarray``."""
        if isinstance(obj, Tensor):
            made = self._tensors.to(obj, device=device, dtype=dtype, copy=bool(copy))
        else:
            read_elements(obj)
            made = self._make_asarray(obj, dtype=dtype, device="cpu", copy=copy)
            made = self._tensors.to(made, _default_device() if device is None else device)
        return made.requires_grad_(requires_grad) if requires_grad else made

    def _sparse(self, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A constructor of sparse tensors: made where its parts are, then copied to the device."""

        @wraps(make)
        def made(
            *args: Any, device: DeviceLike | None = None, requires_grad: bool = False, **kwargs: Any
        ) -> Tensor:
            sparse = make(*args, **kwargs)
            if device is not None:
                sparse = self._tensors.to(sparse, device)
            return sparse.requires_grad_(requires_grad)

        return made


def read_elements(data: Any) -> None:
    """Read the 0-d device tensors in nested lists one by one, as C++ code does where nothing sees it."""
    if isinstance(data, list | tuple):
        for element in data:
            read_elements(element)
    elif isinstance(data, Tensor) and data.is_cuda:
        data.detach().item()


def _default_device() -> torch.device:
    # Only a function mode, such as ``with torch.device(...)``, makes it another one than the host.
    return torch.empty(0).device if torch._C._len_torch_function_stack() else torch.device("cpu")
