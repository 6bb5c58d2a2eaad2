"""Functions that make tensors on a device that Python code names, which C++ code needs a real device for.

Tensors of Python data are made on the host, then copied to the device. A device may be given by its number
alone, as in ``torch.zeros(3, device=0)``: that means an accelerator, which C++ code of a build without CUDA
does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.jit import _builtins

from simcuda.torch_api.patches import Patches
from simcuda.torch_api.tensor_api import DeviceLike, TensorApi, as_method, device_of

SPARSE = (
    *("sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor"),
    *("sparse_bsr_tensor", "sparse_bsc_tensor"),
)
C_KNOWS_NUMBERS = torch._C._has_cuda
FACTORIES = (
    *("arange", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_permuted"),
    *("empty_strided", "eye", "full", "full_like", "hamming_window", "hann_window", "kaiser_window"),
    *("linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like"),
    *("randn", "randn_like", "randperm", "range", "scalar_tensor", "tril_indices", "triu_indices", "zeros"),
    "zeros_like",
)
METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros")


class Factories:
    """Replaces ``torch.tensor`` and its kin, and lets other factories take a number for a device."""

    def __init__(self, tensors: TensorApi) -> None:
        self._tensors = tensors
        self._make_tensor = torch.tensor
        self._make_as_tensor = torch.as_tensor
        self._make_asarray = torch.asarray
        self._parse_to = torch._C._nn._parse_to

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        patches.set(torch, tensor=self.tensor, as_tensor=self.as_tensor, asarray=self.asarray)
        patches.set(torch.Tensor, new_tensor=as_method(self.new_tensor))
        patches.set(torch, **{name: self._sparse(getattr(torch, name)) for name in SPARSE})
        patches.set(torch._C._nn, _parse_to=self.parse_to)
        if C_KNOWS_NUMBERS:
            return
        factories = {name: _taking_numbers(getattr(torch, name)) for name in FACTORIES}
        # TorchScript finds functions of C++ by what they are.
        known: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]  # not annotated
        found = {id(factory): known[id(getattr(torch, name))] for name, factory in factories.items()}
        patches.set(_builtins, _builtin_table=known | found)
        patches.set(torch, **factories)
        patches.set(Tensor, **{name: _taking_numbers(getattr(Tensor, name)) for name in METHODS})

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
            made = self._made_of(data, device, self._make_tensor, dtype=dtype)
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
        return self._made_of(data, device, self._make_as_tensor, dtype=dtype)

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
            made = self._made_of(obj, device, self._make_asarray, dtype=dtype, copy=copy)
        return made.requires_grad_(requires_grad) if requires_grad else made

    def parse_to(self, *how: Any, **named: Any) -> Any:
        """``torch._C._nn._parse_to``: what ``torch.nn.Module.to`` moves to."""
        asked = named.pop("tensor", None) if "tensor" in named else how[0] if how else None
        if isinstance(asked, Tensor):
            return self._parse_to(asked.device, asked.dtype, *how[1:], **named)
        if isinstance(asked, int):
            return self._parse_to(device_of(asked), *how[1:], **named)
        if isinstance(named.get("device"), int):
            named["device"] = device_of(named["device"])
        return self._parse_to(*how, **named)

    def _made_of(
        self, data: Any, device: DeviceLike | None, make: Callable[..., Tensor], **how: Any
    ) -> Tensor:
        """A tensor of Python data, on a device."""
        read_elements(data)
        made = make(data, device="cpu", **how)
        if device is None:
            # Only a function mode, such as ``with torch.device(...)``, makes it another one than the host.
            has_mode = torch._C._len_torch_function_stack()
            device = torch.empty(0).device if has_mode else torch.device("cpu")
        return self._tensors.to(made, device)

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


def _taking_numbers(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Tensor:
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = device_of(kwargs["device"])
        return original(*args, **kwargs)

    return make
