"""``torch.autocast("cuda")``, which C++ applies only to real CUDA tensors.

PyTorch's own state says whether it is on and for which type. Where it is, every operation passes through
CUDA's autocast key, whose kernels are replaced by ones that know simulated tensors.

Known limitations:
    ``torch.autocast("cpu")`` takes simulated tensors for its own.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from simcuda import basis
from simcuda.costs.call import tensors_in
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.patches import Patches, genuine

KEY = torch._C.DispatchKey.AutocastCUDA
_EXCEPT_AUTOCAST = torch._C.DispatchKeySet(KEY)
_set_enabled: Any = genuine(torch.set_autocast_enabled)
_clear_cache: Any = genuine(torch.clear_autocast_cache)
Kernel = Callable[..., Any]

_policies: dict[str, list[str]] = basis.operations("autocast")
LOWER, SINGLE, SINGLE_RESULT, WIDEST = (
    tuple(name for name in names if hasattr(torch.ops.aten, name.partition(".")[0]))
    for names in (
        _policies[policy] for policy in ("lower", "single", "single result", "widest")
    )
)
"""Operations by the type in which they run."""

BY_FUNCTION = {
    "softmax.int": "softmax",
    "log_softmax.int": "log_softmax",
    "lstm_cell": "lstm_cell",
    "gru_cell": "gru_cell",
}
"""Operations that a function of Python makes, which knows kernels that CUDA has beside a composite."""

WITH_TYPE: dict[str, str] = {
    "norm.Scalar": "norm.ScalarOpt_dtype",
    "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype",
}
"""Operations with a result in single precision, by an overload that takes a type."""

UNSAFE: tuple[str, ...] = ("binary_cross_entropy",)
"""Refused, by the error that PyTorch has for it."""


@dataclass(eq=False)
class Autocast:
    """Casts the arguments of operations on simulated devices as CUDA's autocast does."""

    _machine: Machine
    _library: Any = None
    # What was cast once for a whole region, by the address of what it was cast from.
    _lowered: dict[int, tuple[weakref.ref[Tensor], Tensor]] = field(
        default_factory=dict
    )

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        patches.set(
            torch,
            set_autocast_enabled=self.set_enabled,
            clear_autocast_cache=self.clear_cache,
        )
        # Autocast may have been on before the simulation began.
        self._reach(torch.is_autocast_enabled("cuda"))

    def remove(self) -> None:
        """Restore CUDA's own kernels."""
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
            library: Any = torch.library.Library
            self._library = library("aten", "IMPL")
            kernels: dict[str, Kernel] = {}
            for name in (*LOWER, *SINGLE, *WIDEST):
                kernels[name] = partial(self._cast_all, name, _made_by(name))
            for name in SINGLE_RESULT:
                operation = _operation(name)
                place = [
                    argument.name for argument in operation._schema.arguments
                ].index("dtype")
                kernels[name] = partial(self._single_result, place, _made_by(name))
            for name, typed in WITH_TYPE.items():
                defaults = [
                    argument.default_value
                    for argument in _operation(name)._schema.arguments
                ]
                kernels[name] = partial(self._with_type, defaults, _operation(typed))
            with warnings.catch_warnings():
                # Torch warns once per process that a kernel is replaced; this is intended and undone later.
                warnings.filterwarnings(
                    "ignore", message="Warning only once for all operators"
                )
                for name, kernel in kernels.items():
                    self._library.impl(
                        name, kernel, "AutocastCUDA", allow_override=True
                    )
        torch._C._dispatch_tls_set_dispatch_key_included(KEY, enabled)

    def _cast_all(self, name: str, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run an operation with all arguments in one type, which its name decides."""
        with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
            dtype = torch.float32
            if name not in SINGLE:
                given = tensors_in((*args, *kwargs.values())) if name in WIDEST else ()
                is_single = any(
                    self._is_cast(v) and v.dtype == torch.float32 for v in given
                )
                dtype = torch.float32 if is_single else torch.get_autocast_dtype("cuda")
            named = {key: self._cast(value, dtype) for key, value in kwargs.items()}
            return operation(*[self._cast(value, dtype) for value in args], **named)

    def _single_result(
        self, place: int, operation: Any, /, *args: Any, **kwargs: Any
    ) -> Any:
        """Run an operation with a result in single precision, unless one at ``place`` asks for a type."""
        asked = args[place] if place < len(args) else kwargs.get("dtype")
        with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
            if asked is None and self._is_cast(args[0]):
                args = args[:place]
                kwargs = {**kwargs, "dtype": torch.float32}
            return operation(*args, **kwargs)

    def _with_type(self, defaults: list[Any], typed: Any, /, *args: Any) -> Any:
        """The same by an overload that takes a type, given the defaults of the one without."""
        values = (*args, *defaults[len(args) :])
        with torch._C._ExcludeDispatchKeyGuard(_EXCEPT_AUTOCAST):
            return typed(
                *values,
                dtype=torch.float32 if self._is_cast(args[0]) else args[0].dtype,
            )

    def _is_cast(self, value: Any) -> bool:
        """Return True if autocast casts a value: a floating tensor on a device, except doubles."""
        if (
            not isinstance(value, Tensor)
            or not value.is_floating_point()
            or value.dtype == torch.float64
        ):
            return False
        return self._machine.storages.device_of(value) != HOST

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, list | tuple):
            return [self._cast(element, dtype) for element in value]
        if not self._is_cast(value) or value.dtype == dtype:
            return value
        # Parameters are cast once for a whole autocast region.
        is_kept = (
            torch.is_autocast_cache_enabled()
            and dtype == torch.get_autocast_dtype("cuda")
            and value.dtype == torch.float32
            and value.requires_grad
            and value.is_leaf
            and not value._is_view()
        )
        if not is_kept:
            return value.to(dtype)
        source, lowered = self._lowered.get(id(value), (None, None))
        # The address may belong to another tensor by now.
        if source is None or source() is not value:
            lowered = value.to(dtype)
            self._lowered[id(value)] = weakref.ref(value), lowered
        return lowered


def is_pending() -> bool:
    """Return whether autocast is still to cast the arguments of what this thread calls now."""
    is_included = torch._C._dispatch_tls_is_dispatch_key_included(KEY)
    return is_included and not torch._C._dispatch_tls_is_dispatch_key_excluded(KEY)


def _made_by(name: str) -> Any:
    """Return what runs an operation once its arguments are cast."""
    return (
        getattr(torch, BY_FUNCTION[name]) if name in BY_FUNCTION else _operation(name)
    )


def _operation(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")
