"""``torch.autocast("cuda")``, which C++ applies to real CUDA tensors only.

PyTorch's own state says whether it is on and for which type. Where it is, every operation passes through
CUDA's autocast key, whose kernels are replaced by ones that know simulated tensors.

Known limitations:
    ``torch.autocast("cpu")`` takes simulated tensors for its own.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.autocast_policies import LOWER, RECURRENT, SINGLE, SINGLE_RESULT, WIDEST, WITH_TYPE
from simcuda.torch_api.patches import Patches

KEY = torch._C.DispatchKey.AutocastCUDA
_EXCEPT_AUTOCAST = torch._C.DispatchKeySet(KEY)
_set_enabled: Any = torch.set_autocast_enabled
_clear_cache: Any = torch.clear_autocast_cache
Kernel = Callable[..., Any]


class Autocast:
    """Casts the arguments of operations on simulated devices as CUDA's autocast does."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._library: Any = None
        self._lowered: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        patches.set(torch, set_autocast_enabled=self.set_enabled, clear_autocast_cache=self.clear_cache)
        self._reach(torch.is_autocast_enabled("cuda"))

    def remove(self) -> None:
        """Give CUDA's own kernels back."""
        self.clear_cache()
        self._reach(False)
        if self._library is not None:
            self._library._destroy()

    def set_enabled(self, *device_type_and_enabled: Any) -> None:
        """``torch.set_autocast_enabled``, with the device type or, for ``cuda``, without."""
        device_type, enabled = ("cuda", *device_type_and_enabled)[-2:]
        _set_enabled(device_type, enabled)
        if device_type == "cuda":
            self._reach(enabled)

    def clear_cache(self) -> None:
        """``torch.clear_autocast_cache``."""
        self._lowered.clear()
        _clear_cache()

    def _reach(self, enabled: bool) -> None:
        """Let the operations of this thread pass through the kernels, or not."""
        if enabled and self._library is None:
            self._register()
        torch._C._dispatch_tls_set_dispatch_key_included(KEY, enabled)

    def _register(self) -> None:
        library: Any = torch.library.Library
        self._library = library("aten", "IMPL")
        for policy, names in (
            (self._lower, (*LOWER, *RECURRENT)),
            (self._single, SINGLE),
            (self._single_result, SINGLE_RESULT),
            (self._with_type, WITH_TYPE),
            (self._widest, WIDEST),
        ):
            for name in names:
                self._replace(name, policy(name))

    def _replace(self, name: str, kernel: Kernel) -> None:
        with warnings.catch_warnings():
            # Torch says once in a process that a kernel is replaced, which is meant to be and is undone.
            warnings.filterwarnings("ignore", message="Warning only once for all operators")
            self._library.impl(name, kernel, "AutocastCUDA", allow_override=True)

    def _lower(self, name: str) -> Kernel:
        return self._casting(name, lambda _: torch.get_autocast_dtype("cuda"))

    def _single(self, name: str) -> Kernel:
        return self._casting(name, lambda _: torch.float32)

    def _widest(self, name: str) -> Kernel:
        def widest(values: Iterable[Any]) -> torch.dtype:
            single = any(self._is_cast(v) and v.dtype == torch.float32 for v in _flat(values))
            return torch.float32 if single else torch.get_autocast_dtype("cuda")

        return self._casting(name, widest)

    def _casting(self, name: str, dtype_for: Callable[[Iterable[Any]], torch.dtype]) -> Kernel:
        operation = _operation(name)

        def kernel(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
                dtype = dtype_for((*args, *kwargs.values()))
                named = {key: self._cast(value, dtype) for key, value in kwargs.items()}
                return operation(*[self._cast(value, dtype) for value in args], **named)

        return kernel

    def _single_result(self, name: str) -> Kernel:
        operation = _operation(name)
        place = [argument.name for argument in operation._schema.arguments].index("dtype")

        def kernel(*args: Any, **kwargs: Any) -> Any:
            asked = args[place] if place < len(args) else kwargs.get("dtype")
            with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
                if asked is None and self._is_cast(args[0]):
                    args, kwargs = args[:place], {**kwargs, "dtype": torch.float32}
                return operation(*args, **kwargs)

        return kernel

    def _with_type(self, name: str) -> Kernel:
        operation, typed = _operation(name), _operation(WITH_TYPE[name])
        defaults = [argument.default_value for argument in operation._schema.arguments]

        def kernel(*args: Any) -> Any:
            values = (*args, *defaults[len(args) :])
            with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
                return typed(*values, dtype=torch.float32 if self._is_cast(args[0]) else args[0].dtype)

        return kernel

    def _is_cast(self, value: Any) -> bool:
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.dtype == torch.float64:
            return False
        tag = self._machine.storages.of(value)
        return tag is not None and tag.device != HOST

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, list | tuple):
            return [self._cast(element, dtype) for element in value]
        if not self._is_cast(value) or value.dtype == dtype:
            return value
        if not self._is_kept(value, dtype):
            return value.to(dtype)
        source, lowered = self._lowered.get(id(value), (None, None))
        if source is None or source() is not value:
            lowered = value.to(dtype)
            self._lowered[id(value)] = weakref.ref(value), lowered
        return lowered

    def _is_kept(self, value: Tensor, dtype: torch.dtype) -> bool:
        """Whether the result is worth keeping: parameters are cast once for a whole autocast region."""
        return (
            torch.is_autocast_cache_enabled()
            and dtype == torch.get_autocast_dtype("cuda")
            and value.dtype == torch.float32
            and value.requires_grad
            and value.is_leaf
            and not value._is_view()
        )


def _operation(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
