"""Replace the methods by which tensors and storages tell their device and are moved."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, UntypedStorage
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.overrides import handle_torch_function, has_torch_function_unary

from simcuda.device.dispatch_key import is_watched, unwatched, watched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST, device_of_tag
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.fake_tensors import is_fake
from simcuda.torch_api.patches import Patches, as_method, genuine, native_new
from simcuda.torch_api.refusals import COPIED, refuse_if

_Base: Any = torch._C.TensorBase
_tolist, _to, _type, _numpy = (
    genuine(getattr(_Base, name)) for name in ("tolist", "to", "type", "numpy")
)
_text: Any = torch._tensor_str._str_intern
DeviceLike = torch.device | str | int
CPU = torch.device("cpu")
_make_tensor, _make_storage, _make_device = map(
    native_new, (Tensor, UntypedStorage, torch.device)
)
_resize: Callable[[UntypedStorage, int], UntypedStorage] = genuine(
    UntypedStorage.resize_
)
_storage_device: Callable[[UntypedStorage], torch.device] = vars(torch._C.StorageBase)[
    "device"
].__get__
_is_shared: Callable[[UntypedStorage], bool] = genuine(UntypedStorage.is_shared)
_write_file: Callable[..., None] = genuine(UntypedStorage._write_file)
_write_record: Any = torch._C.PyTorchFileWriter.write_record
_write: Callable[..., None] = genuine(_write_record.__func__)

_address, _storage_address = genuine(_Base.data_ptr), genuine(UntypedStorage.data_ptr)

DEVICE_ADDRESSES = (1 << 52) + (secrets.randbits(30) << 16)
"""Where the addresses of simulated devices begin: no program has memory there, so that none can be read.

It is drawn, so that nobody can tell from an address where the host keeps the data.
"""

CONVERSIONS = ("__bool__", "__complex__", "__float__", "__index__", "__int__")
"""Methods by which C++ reads the tensors in Python data, with no operation of its own."""

METHODS = (
    "to",
    "cuda",
    "cpu",
    "type",
    "type_as",
    "numpy",
    "pin_memory",
    "record_stream",
    "data_ptr",
)
"""Methods of ``torch.Tensor`` that ``TensorApi`` implements under the same names."""


class CrossDeviceCopy(torch.autograd.Function):
    """A copy to another device, whose gradient is copied back."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, api: TensorApi, device: int, how: dict[str, Any]
    ) -> Tensor:
        """Copy; see ``Dispatcher.copy``."""
        ctx.api, ctx.origin, ctx.dtype = api, api.index_of(tensor), tensor.dtype
        return api.dispatcher.copy(tensor, device, **how)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Copy the gradient to where the tensor was."""
        (gradient,) = gradients
        return (
            ctx.api.move(gradient, ctx.origin, {"dtype": ctx.dtype}),
            None,
            None,
            None,
        )


_copy_with_gradient: Any = CrossDeviceCopy.apply


class InPlaceOf(partial[Any]):
    """A function that is given the one it replaces, first, and has its hash, which is the operation's own.

    PyTorch keeps operations in tables, as for jagged tensors, which are filled before or after.
    """

    def __hash__(self) -> int:
        return hash(self.args[0])


@dataclass(frozen=True)
class TensorApi:
    """Replaces attributes of ``torch.Tensor``."""

    machine: Machine
    dispatcher: Dispatcher

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        patches.set(
            Tensor,
            device=property(self.device),
            is_cuda=property(lambda tensor: self.index_of(tensor) != HOST),
            is_cpu=property(lambda tensor: self.device(tensor).type == "cpu"),
            get_device=as_method(self.index_of),
            # It may be given a device, which is deprecated.
            is_pinned=lambda tensor, _=None, **__: (
                (tag := self.machine.storages.of(tensor)) is not None and tag.pinned
            ),
            tolist=lambda tensor: _tolist(self._read_by_host(tensor)),
            **{name: _answered_by_class(name, getattr(self, name)) for name in METHODS},
        )
        patches.wrap(self._convert, *((Tensor, name) for name in CONVERSIONS))
        patches.redirect(
            torch._to_cpu,
            lambda tensors: tuple(self.to(tensor, CPU) for tensor in tensors),
        )
        # Called from Python, these name the device that is meant.
        to = torch.ops.aten.to
        copy = torch.ops.aten._to_copy
        aten = torch.ops.aten
        for operation in (to, to.device, to.dtype_layout, to.prim_Device):
            patches.set(operation, _op=InPlaceOf(self._to, operation._op))
        for operation in (copy, copy.default):
            patches.set(operation, _op=InPlaceOf(self._copy, operation._op))
        patches.set(
            aten.cpu,
            _op=InPlaceOf(lambda _, tensor: self.to(tensor, CPU), aten.cpu._op),
        )
        patches.set(torch._tensor_str, _str=self.text)
        # These need a tensor that Python has not seen yet: nothing may look at them.
        patches.set(Tensor, as_subclass=unwatched(genuine(Tensor.as_subclass)))
        make: Any = unwatched(genuine(Tensor._make_subclass))
        patches.set(Tensor, _make_subclass=staticmethod(partial(_make_of, make)))
        patches.set_new(Tensor, _new)
        patches.set_new(torch.device, _new_device)
        make = unwatched(genuine(Tensor._make_wrapper_subclass))
        patches.set(
            Tensor, _make_wrapper_subclass=staticmethod(partial(self._wrap, make))
        )

    def _wrap(
        self, make: Callable[..., Tensor], /, *args: Any, **kwargs: Any
    ) -> Tensor:
        """``torch.Tensor._make_wrapper_subclass``: a tensor without data, such as a jagged one."""
        asked = [
            each
            for each in (*args, *kwargs.values())
            if isinstance(each, torch.device | str)
        ]
        device = torch.device(asked[0]) if asked else CPU
        if device.type != "cuda":
            return make(*args, **kwargs)
        # C++ would ask a device of the tensor's own for streams: the storage tells it, as of all others.
        made = make(
            *(CPU if each is asked[0] else each for each in args),
            **{
                name: CPU if each is asked[0] else each for name, each in kwargs.items()
            },
        )
        self.machine.storages.add(made.untyped_storage(), self.machine.index(device), 0)
        return made

    def index_of(self, tensor: Tensor) -> int:
        """Index of a tensor's device, or ``HOST``."""
        tag = self.machine.storages.of(tensor)
        if tag is None:
            # A fake tensor has no memory, and knows itself.
            return self.machine.index(tensor.device) if is_fake(tensor) else HOST
        return tag.device

    def device(self, tensor: Tensor) -> torch.device:
        """The device a tensor is on."""
        index = self.index_of(tensor)
        return (
            _Base.device.__get__(tensor)
            if index == HOST
            else self.machine.devices[index]
        )

    def type(
        self, tensor: Tensor, dtype: Any = None, non_blocking: bool = False, **how: Any
    ) -> Any:
        """``torch.Tensor.type``; without a type, the name of the tensor's own."""
        if dtype is None:
            return (
                _type_name(tensor) if self.index_of(tensor) != HOST else _type(tensor)
            )
        asked = dtype
        if isinstance(dtype, str):
            # A name such as ``torch.cuda.FloatTensor``; names of host types may stay names.
            module, _, kind = dtype.rpartition(".")
            if module == "torch.cuda" and not hasattr(torch.cuda, kind):
                raise ValueError(f"invalid type: '{dtype}'")
            asked = getattr(
                {"torch": torch, "torch.cuda": torch.cuda}.get(module), kind, dtype
            )
        if not hasattr(asked, "is_cuda"):
            return _type(tensor, asked, non_blocking=non_blocking, **how)
        # A type without a device keeps the tensor on the one it is on.
        stays = asked.is_cuda == (self.index_of(tensor) != HOST)
        device = (
            self.device(tensor)
            if stays
            else torch.device("cuda" if asked.is_cuda else "cpu")
        )
        return self.to(tensor, device, asked.dtype, non_blocking=non_blocking, **how)

    def move(
        self, tensor: Tensor, device: int, how: dict[str, Any], *, copy: bool = False
    ) -> Tensor:
        """The tensor on a device or on ``HOST``, itself where nothing changes and no ``copy`` is asked for.

        ``how`` are arguments of ``aten._to_copy``.
        """
        # A lazy module's parameter refuses almost every function until its first use.
        if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
            with torch._C.DisableTorchFunctionSubclass():
                return self.dispatcher.copy(tensor.detach(), device, **how)
        if (
            tensor.is_nested
            and tensor.layout is torch.strided
            and self.index_of(tensor) != device
        ):
            # Its memory is one buffer; sizes and strides stay on the host.
            form = (tensor._nested_tensor_size(), tensor._nested_tensor_strides())
            buffer = self.move(tensor.values(), device, how)
            return torch._nested_view_from_buffer(
                buffer, *form, tensor._nested_tensor_storage_offsets()
            )
        if self.index_of(tensor) == device:
            return _to(tensor, how.pop("dtype", tensor.dtype), copy=copy, **how)  # type: ignore[no-any-return]
        if tensor.requires_grad and torch.is_grad_enabled():
            return _copy_with_gradient(tensor, self, device, how)  # type: ignore[no-any-return]
        return self.dispatcher.copy(tensor, device, **how)

    def to(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """``torch.Tensor.to``."""
        names: tuple[str, ...] = ("device", "dtype", "non_blocking", "copy")
        if args and isinstance(args[0], Tensor):
            names = ("other", "non_blocking", "copy")
        elif args and isinstance(args[0], torch.dtype):
            names = ("dtype", "non_blocking", "copy")
        if len(args) > len(names):
            raise TypeError(
                f"to() takes at most {len(names)} positional arguments here, {len(args)} were given"
            )
        asked = dict(zip(names, args, strict=False)) | kwargs
        other = asked.pop("other", None)
        if other is not None:
            asked |= {"device": other.device, "dtype": other.dtype}
        device = asked.pop("device", None)
        target = self.device(tensor) if device is None else device_of(device)
        if target.type not in ("cpu", "cuda"):
            return _to(tensor, *args, **kwargs)  # type: ignore[no-any-return]
        if tensor.is_meta and not is_fake(tensor):
            return _to(tensor, CPU)  # type: ignore[no-any-return]  # it refuses: there is no data
        copy = asked.pop("copy", False)
        how = {name: value for name, value in asked.items() if value is not None}
        return self.move(tensor, self.machine.index(target), how, copy=copy)

    def cuda(
        self,
        tensor: Tensor,
        device: DeviceLike | None = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format | None = None,
    ) -> Tensor:
        """``torch.Tensor.cuda``."""
        target = torch.device("cuda") if device is None else device_of(device)
        return self.to(
            tensor, target, non_blocking=non_blocking, memory_format=memory_format
        )

    def cpu(
        self, tensor: Tensor, memory_format: torch.memory_format | None = None
    ) -> Tensor:
        """``torch.Tensor.cpu``."""
        return self.to(tensor, CPU, memory_format=memory_format)

    def type_as(self, tensor: Tensor, other: Tensor) -> Tensor:
        """``torch.Tensor.type_as``, which moves the tensor to where the other one is, too."""
        return self.to(tensor, other)

    def pin_memory(self, tensor: Tensor, device: DeviceLike | None = None) -> Tensor:  # noqa: ARG002 - deprecated
        """``torch.Tensor.pin_memory``."""
        if self.index_of(tensor) != HOST:
            raise RuntimeError(
                f"cannot pin '{_type_name(tensor)}' only dense CPU tensors can be pinned"
            )
        if tensor.is_pinned():
            return tensor
        with torch.no_grad():
            pinned = torch.empty_strided(
                tensor.shape,
                tensor.stride(),
                dtype=tensor.dtype,
                device="cpu",
                pin_memory=True,
            )
            return pinned.copy_(tensor)

    def numpy(self, tensor: Tensor, *, force: bool = False) -> Any:
        """``torch.Tensor.numpy``, which refuses what is not on the host."""
        is_on_host = self.index_of(tensor) == HOST
        if not is_on_host and not force:
            raise TypeError(
                f"can't convert {self.device(tensor)} device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        source = tensor if is_on_host and force else self._read_by_host(tensor)
        return _numpy(source, force=force)

    def data_ptr(self, tensor: Tensor) -> int:
        """``torch.Tensor.data_ptr``."""
        # Of a subclass, C++ would call this once more.
        with torch._C.DisableTorchFunctionSubclass():
            return _seen_at(self.index_of(tensor), _address(tensor))

    def record_stream(self, tensor: Tensor, stream: Any) -> None:
        """``torch.Tensor.record_stream``."""
        tag = self.machine.storages.of(tensor)
        if tag is not None and tag.block is not None:
            self.machine.allocators[tag.device].record_stream(tag.block, stream.number)

    def text(self, tensor: Tensor, *, tensor_contents: str | None = None) -> str:
        """``torch._tensor_str._str``, with the dispatch mode on: printing reads values one by one."""
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            return str(_text(tensor, tensor_contents=tensor_contents))

    def _convert(self, original: Callable[[Tensor], Any], tensor: Tensor) -> Any:
        if is_watched() or self.index_of(tensor) == HOST:
            return original(tensor)
        with watched():
            return original(tensor)

    def _to(
        self, _: Callable[..., Tensor], tensor: Tensor, *how: Any, **named: Any
    ) -> Tensor:
        # Of dense tensors, as they are all.
        return self.to(
            tensor,
            *how,
            **{name: named[name] for name in named.keys() - {"layout", "pin_memory"}},
        )

    def _copy(
        self, original: Callable[..., Tensor], tensor: Tensor, **how: Any
    ) -> Tensor:
        if how.get("device") is None or not is_watched():
            return original(tensor, **how)
        target = self.machine.index(device_of(how.pop("device")))
        return self.dispatcher.copy(tensor, target, **how)

    def _read_by_host(self, tensor: Tensor) -> Tensor:
        """The tensor itself, or a copy of it on the host that the host has waited for."""
        tag = self.machine.storages.of(tensor)
        if tag is not None and tag.device != HOST:
            return self.dispatcher.copy(tensor.detach(), HOST)
        if tag is not None and tag.pinned:
            # A copy may still be writing there.
            self.machine.host_touches(self.machine.touched(tensor, tag), writes=False)
        return tensor


@dataclass(frozen=True)
class StorageApi:
    """Replaces attributes of ``torch.UntypedStorage``, which deep copies and pickling use."""

    machine: Machine

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        get = vars(torch._C.StorageBase)["__getitem__"]
        refused = refuse_if(
            lambda storage, key: isinstance(key, slice) and storage.is_cuda,
            get,
            "A part of a storage",
            COPIED,
        )
        patches.redirect(get, refused)
        patches.set_new(UntypedStorage, self.new)
        patches.redirect(_write_record.__func__, self._write_record)
        patches.set(
            UntypedStorage,
            device=property(self.device),
            is_cuda=property(lambda storage: self.index_of(storage) != HOST),
            data_ptr=lambda storage: _seen_at(
                self.index_of(storage), _storage_address(storage)
            ),
            # Memory of a device always is.
            is_shared=lambda storage: (
                self.index_of(storage) != HOST or _is_shared(storage)
            ),
            clone=lambda storage: self.copy(storage, self.index_of(storage)),
            resize_=lambda storage, nbytes: self.resize(storage, nbytes),  # noqa: PLW0108 - a bound method would not bind
            cpu=lambda storage: self.to(storage, "cpu"),
            cuda=lambda storage, device=None, non_blocking=False: self.to(
                storage, device, non_blocking
            ),
            _write_file=lambda storage, *how: _write_file(
                self._read_by_host(storage), *how
            ),
            to=lambda storage, *, device, non_blocking=False: self.to(
                storage, device, non_blocking
            ),
        )

    def index_of(self, storage: UntypedStorage) -> int:
        """Index of a storage's device, or ``HOST``."""
        return device_of_tag(self.machine.storages.tags.get(storage._cdata))

    def device(self, storage: UntypedStorage) -> torch.device:
        """The device a storage is on."""
        index = self.index_of(storage)
        return (
            _storage_device(storage) if index == HOST else self.machine.devices[index]
        )

    def _write_record(self, writer: Any, name: str, data: Any, size: int) -> None:
        """``torch._C.PyTorchFileWriter.write_record``, by which a checkpoint is written."""
        _write(
            writer,
            name,
            self._read_by_host(data) if isinstance(data, UntypedStorage) else data,
            size,
        )

    def _read_by_host(self, storage: UntypedStorage) -> UntypedStorage:
        """The storage on the host; a copy may still be writing to pinned memory."""
        tag = self.machine.storages.tags.get(storage._cdata)
        if tag is not None and tag.pinned:
            self.machine.host_touches(tag.serial, writes=False)
        return self.to(storage, "cpu")

    def new(
        self, kind: Any, *data: Any, device: DeviceLike | None = None, **how: Any
    ) -> UntypedStorage:
        """A storage of so many bytes, or of Python data, on a device."""
        where = CPU if device is None else device_of(device)
        index = self.machine.index(where)
        made: UntypedStorage = _make_storage(
            kind, *data, device=where if index == HOST else CPU, **how
        )
        if index == HOST or not isinstance(data[0] if data else 0, int):
            return made if index == HOST else self.copy(made, index)
        self.machine.place(made, index)
        return made

    def resize(self, storage: UntypedStorage, nbytes: int) -> UntypedStorage:
        """Change a storage's size in place, as sharded parameters do to give their memory back."""
        _resize(storage, nbytes)
        tag = self.machine.storages.tags.get(storage._cdata)
        if tag is not None:
            self.machine.resized(tag, nbytes)
        return storage

    def to(
        self,
        storage: UntypedStorage,
        device: DeviceLike | None,
        non_blocking: bool = False,
    ) -> UntypedStorage:
        """The storage on a device, itself where it is there already."""
        target = (
            torch.device("cuda", device)
            if isinstance(device, int)
            else torch.device(device or "cuda")
        )
        index = self.machine.index(target)
        return (
            storage
            if index == self.index_of(storage)
            else self.copy(storage, index, non_blocking)
        )

    def copy(
        self, storage: UntypedStorage, device: int, non_blocking: bool = False
    ) -> UntypedStorage:
        """A copy of a storage on a device or on ``HOST``."""
        # One without memory has a copy without memory.
        made: UntypedStorage = _make_storage(
            UntypedStorage, storage.nbytes(), device=_storage_device(storage)
        )
        if device == HOST:
            self.machine.place_on_host(made)
        else:
            self.machine.place(made, device)
        made.copy_(storage, non_blocking)
        return made


def _answered_by_class(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that asks the class of a tensor, or a mode, by ``__torch_function__`` first."""

    def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        # A parameter without a shape knows by name what may be done with it: moving it is among that.
        if has_torch_function_unary(tensor) and not isinstance(
            tensor, UninitializedParameter | UninitializedBuffer
        ):
            public = getattr(Tensor, name)
            return handle_torch_function(public, (tensor,), tensor, *args, **kwargs)
        return function(tensor, *args, **kwargs)

    return method


def _new(kind: type[Tensor], *data: Any, **how: Any) -> Tensor:
    # A subclass needs a tensor that Python has not seen yet.
    make: Any = _make_tensor if kind is Tensor else unwatched(_make_tensor)
    made: Tensor = make(kind, *data, **how)
    return made


def _make_of(make: Callable[..., Tensor], /, *args: Any, **kwargs: Any) -> Tensor:
    """``torch.Tensor._make_subclass``: for C++, no tensor is on a device."""
    if str(kwargs.get("device_for_backend_keys")).startswith("cuda"):
        kwargs["device_for_backend_keys"] = CPU
    return make(*args, **kwargs)


def _new_device(kind: type[torch.device], *named: Any, **how: Any) -> torch.device:
    # A number alone is one of the accelerator, which C++ does not have.
    is_number = len(named) == 1 and type(named[0]) is int and named[0] >= 0 and not how
    made: torch.device = _make_device(
        kind, *(("cuda",) if is_number else ()), *named, **how
    )
    return made


def device_of(device: DeviceLike) -> torch.device:
    """The device that ``cuda:1``, or 1, or a device means."""
    return (
        torch.device("cuda", device)
        if isinstance(device, int)
        else torch.device(device)
    )


def _seen_at(device: int, address: int) -> int:
    """The address that code sees of what lies at an address on the host."""
    return address if device == HOST or not address else address + DEVICE_ADDRESSES


def _type_name(tensor: Tensor) -> str:
    # With a function mode on, torch asks the simulated method for the name.
    return "torch.cuda." + str(_type(tensor)).rpartition(".")[2]
