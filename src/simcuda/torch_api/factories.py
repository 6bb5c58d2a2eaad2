"""Functions that create tensors on a named device, for which C++ code needs a real one.

Tensors of Python data are made on the host, then copied to the device. A device may be given by its number
alone, as in ``torch.zeros(3, device=0)``: that means an accelerator, which C++ code of a build without CUDA
does not have. Types from before there were dtypes, such as ``torch.cuda.FloatTensor``, make tensors too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import torch
import torch.utils._device
from torch import Tensor

from simcuda.basis import operations
from simcuda.device.dispatch_key import wake
from simcuda.device.machine import Machine
from simcuda.torch_api.patches import Patches, as_method, genuine
from simcuda.torch_api.refusals import refuse
from simcuda.torch_api.tensor_api import DeviceLike, TensorApi, device_of

C_KNOWS_NUMBERS = torch._C._has_cuda
FACTORIES: tuple[Callable[..., Tensor], ...] = tuple(
    getattr(torch, name) for name in operations("factories")
)
NAMED_ONLY: tuple[tuple[Any, str], ...] = (
    *(
        (torch, name)
        for name in ("from_file", "empty_quantized", "_efficientzerotensor")
    ),
    *((torch.fft, name) for name in ("fftfreq", "rfftfreq")),
)
"""Functions that take a device, and no number for it."""
MAKERS: tuple[Callable[..., Tensor], ...] = (
    torch.tensor,
    torch.as_tensor,
    torch.asarray,
)
"""Functions that make tensors of Python data."""

METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros")


_make_tensor, _make_as_tensor, _make_asarray = map(genuine, MAKERS)
_parse_to = genuine(torch._C._nn._parse_to)
_KIND: Any = type(torch.FloatTensor)
DEFAULTS = "torch.set_default_dtype() and torch.set_default_device()"
KEPT = ("dtype", "layout", "is_cuda", "is_sparse", "__module__", "__doc__")
"""Attributes that a replacement of a torch type takes over from it."""
# As many types as there are, without a list that new versions would outdate.
LEGACY: list[tuple[Any, Any]] = [
    (module, kind)
    for module in (torch, torch.sparse, torch.cuda, torch.cuda.sparse)
    for kind in vars(module).values()
    if type(kind) is _KIND
]
"""The types from before there were dtypes, each with its module."""


@dataclass(frozen=True)
class Factories:
    """Replaces ``torch.tensor`` and its kin, and lets other factories take a number for a device.

    If the simulation sleeps, operations are watched only once a device is named.
    """

    tensors: TensorApi
    sleeps: bool

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        makers: list[Callable[..., Tensor]] = [
            self.tensor,
            self.as_tensor,
            self.asarray,
        ]
        for original, own in zip(MAKERS, makers, strict=True):
            patches.redirect(original, own)
        for make in (torch.from_numpy, torch.frombuffer):
            patches.redirect(make, partial(self._of_memory, genuine(make)))
        patches.set(Tensor, new_tensor=as_method(self.new_tensor))
        for name in operations("sparse factories"):
            patches.set(
                torch, **{name: partial(self._sparse, genuine(getattr(torch, name)))}
            )
        nested: Any = vars(torch._C)["_nested"]
        patches.set(
            nested, nested_tensor=partial(self._sparse, genuine(nested.nested_tensor))
        )
        patches.set(torch._C._nn, _parse_to=self.parse_to)
        if C_KNOWS_NUMBERS and not self.sleeps:
            return
        # Redirected, they stay what they are: TorchScript and ``__torch_function__`` find them by that.
        for factory in FACTORIES:
            patches.redirect(factory, taking_devices(factory))
        patches.set(
            Tensor, **{name: taking_devices(getattr(Tensor, name)) for name in METHODS}
        )

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
        # Given a tensor, ``torch.tensor`` makes a copy on the same device.
        if isinstance(data, Tensor):
            target = self.tensors.device(data) if device is None else device_of(device)
            with torch._C.DisableTorchFunctionSubclass():
                made = self.tensors.to(data.detach(), target, dtype=dtype, copy=True)
        else:
            made = self._made_of(data, device, _make_tensor, dtype=dtype)
        if pin_memory:
            made = self.tensors.pin_memory(made)
        # Within a transform of functions, torch refuses even to ask for none.
        return made.requires_grad_() if requires_grad else made

    def _of_memory(
        self, make: Callable[..., Tensor], /, *memory: Any, **how: Any
    ) -> Tensor:
        made = make(*memory, **how)
        self.tensors.machine.settle((self.tensors.machine.storages.of(made),))
        return made

    def new_tensor(self, tensor: Tensor, data: Any, **kwargs: Any) -> Tensor:
        """``torch.Tensor.new_tensor``."""
        asked: dict[str, Any] = {
            "dtype": tensor.dtype,
            "device": self.tensors.device(tensor),
        }
        return self.tensor(
            data, **(asked | {name: v for name, v in kwargs.items() if v is not None})
        )

    def as_tensor(
        self,
        data: Any,
        dtype: torch.dtype | None = None,
        device: DeviceLike | None = None,
    ) -> Tensor:
        """``torch.as_tensor``."""
        if isinstance(data, Tensor):
            with torch._C.DisableTorchFunctionSubclass():
                return self.tensors.to(data, device=device, dtype=dtype)
        return self._made_of(data, device, _make_as_tensor, dtype=dtype)

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
            with torch._C.DisableTorchFunctionSubclass():
                made = self.tensors.to(obj, device=device, dtype=dtype, copy=bool(copy))
        else:
            made = self._made_of(obj, device, _make_asarray, dtype=dtype, copy=copy)
        return made.requires_grad_(requires_grad) if requires_grad else made

    def parse_to(self, *how: Any, **named: Any) -> Any:
        """``torch._C._nn._parse_to``: what ``torch.nn.Module.to`` moves to."""
        asked = (
            named.pop("tensor", None) if "tensor" in named else how[0] if how else None
        )
        if isinstance(asked, Tensor):
            return _parse_to(asked.device, asked.dtype, *how[1:], **named)
        if isinstance(asked, int):
            return _parse_to(device_of(asked), *how[1:], **named)
        if isinstance(named.get("device"), int):
            named["device"] = device_of(named["device"])
        return _parse_to(*how, **named)

    def _made_of(
        self,
        data: Any,
        device: DeviceLike | None,
        make: Callable[..., Tensor],
        **how: Any,
    ) -> Tensor:
        """A tensor of Python data, on a device."""
        made = make(data, device="cpu", **how)
        self.tensors.machine.settle((self.tensors.machine.storages.of(made),))
        if device is None:
            # Only a function mode, such as ``with torch.device(...)``, makes it another one than the host.
            has_mode = torch._C._len_torch_function_stack()
            device = torch.empty(0).device if has_mode else torch.device("cpu")
        return self.tensors.to(made, device)

    def _sparse(
        self,
        make: Callable[..., Tensor],
        /,
        *args: Any,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        """A sparse tensor: made where its parts are, then copied to the device."""
        sparse = make(*args, **kwargs)
        if device is not None:
            sparse = self.tensors.to(sparse, device)
        return sparse.requires_grad_(requires_grad)


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
        """Return whether ``value`` is a tensor of this type."""
        if not isinstance(value, Tensor) or value.dtype != cls.dtype:
            return False
        return value.is_cuda == cls.is_cuda and value.is_sparse == cls.is_sparse


@dataclass(frozen=True)
class LegacyTypes:
    """Replaces the types in ``torch`` and ``torch.cuda``, which C++ code makes for real devices alone."""

    machine: Machine
    factories: Factories

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        for module, original in LEGACY:
            make: Any = self._on_device if original.is_cuda else self._on_host
            known = {name: getattr(original, name) for name in KEPT}
            known |= {"original": original, "make": staticmethod(make)}
            patches.set(
                module, **{original.__name__: LegacyType(original.__name__, (), known)}
            )
        set_original = genuine(torch._C._set_default_tensor_type)

        def set_default(kind: Any) -> None:
            if kind.is_cuda:
                refuse("A default type of tensors on a device", f"use {DEFAULTS}")()
            set_original(getattr(kind, "original", kind))

        patches.set(torch._C, _set_default_tensor_type=set_default)

    def _on_host(self, kind: LegacyType, *data: Any, **how: Any) -> Tensor:
        if data and isinstance(data[0], Tensor):
            _check(kind, data[0])
        made: Tensor = kind.original(*data, **how)
        self.machine.settle((self.machine.storages.of(made),))
        return made

    def _on_device(
        self, kind: LegacyType, *data: Any, device: DeviceLike | None = None
    ) -> Tensor:
        where = torch.device("cuda") if device is None else device_of(device)
        if kind.is_sparse:
            if not data or isinstance(data[0], int):
                data = (data or (0,),)
            return torch.sparse_coo_tensor(*data, dtype=kind.dtype, device=where)
        if not data or isinstance(data[0], int | torch.Size):
            return torch.empty(*(data or (0,)), dtype=kind.dtype, device=where)
        (values,) = data
        if isinstance(values, Tensor):
            _check(kind, values)
            return values.detach()
        return self.factories.tensor(values, dtype=kind.dtype, device=where)


def taking_devices(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which may be given a number for a device, and wakes the simulation if it is given one."""
    original = genuine(original)

    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if isinstance(device, int):
            kwargs["device"] = device = device_of(device)
        # A name such as ``cuda:1``, or a device, whose text begins with the name.
        if kwargs.get("pin_memory") or (
            device is not None and str(device).startswith("cuda")
        ):
            wake()
        return original(*args, **kwargs)

    return make


def wake_by_names(patches: Patches) -> None:
    """Let what names a device wake a sleeping simulation, in addition to the functions that are replaced.

    While it sleeps, code that uses no device runs at torch's own speed.

    Known limitations:
        Code of C++ that makes a tensor on a device by itself, on a thread that sleeps, does not: it fails as
        it does without CUDA.
    """
    for owner, name in NAMED_ONLY:
        patches.set(owner, **{name: taking_devices(getattr(owner, name))})
    for kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
        patches.set(kind, __call__=as_method(taking_devices(kind.__call__)))
    # Functions that are given no device take that of a context, or the default one.
    context: Any = torch.utils._device.DeviceContext
    original = context.__init__

    def enter(self: Any, device: Any) -> None:
        if torch.device(device).type == "cuda":
            wake()
        original(self, device)

    patches.set(context, __init__=enter)


def _check(kind: LegacyType, tensor: Tensor) -> None:
    if not isinstance(tensor, kind):
        raise TypeError(
            f"expected {kind.__module__}.{kind.__name__} (got {tensor.type()})"
        )
