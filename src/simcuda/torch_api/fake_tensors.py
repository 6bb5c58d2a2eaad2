"""Fake tensors, which have a shape and a device and no data: what compilers and planners compute with.

One on a simulated device is a tensor of the host for C++ code, as any other: autograd would ask a driver for
the streams of a device. Python code sees the device that it stands for. It takes no memory and costs nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

from simcuda.costs.call import all_tensors_in
from simcuda.device import dispatch_key
from simcuda.device.dispatch_key import unwatched, watched
from simcuda.torch_api.patches import Patches, as_method

MODULE = "torch._subclasses.fake_tensor"
CPU = torch.device("cpu")
ASK_FOR_DEVICE = torch.ops.prim.device.default


def install(patches: Patches, module: ModuleType) -> None:
    """Install the replacements in the module of fake tensors, which may be loaded at any time."""
    fake: Any = vars(module)["FakeTensor"]
    mode: Any = vars(module)["FakeTensorMode"]
    # What a mode runs for its values, such as a constant, or an operation whose shapes nobody knows in
    # advance, runs on a GPU too.
    patches.set(module, no_dispatch=_for_values)
    in_kernel = partial(_in_kernel, vars(module)["in_kernel_invocation_manager"])
    for user in (module, sys.modules["torch._subclasses.fake_impls"]):
        patches.set(user, in_kernel_invocation_manager=in_kernel)
    # A copy of a mode copies its weak references, of which each would free the same storage.
    patches.set(
        vars(module)["StorageWeakRef"], __deepcopy__=lambda reference, _: reference
    )
    converter: Any = vars(module)["FakeTensorConverter"]
    patches.wrap(_convert, (converter, "from_real_tensor"))
    patches.set(mode, dispatch=as_method(partial(_dispatch, unwatched(mode.dispatch))))
    common_device = partial(_common_device, fake._find_common_device)
    patches.set(fake, _find_common_device=staticmethod(common_device))
    patches.set(
        fake,
        __torch_dispatch__=classmethod(
            partial(_dispatch, fake.__torch_dispatch__.__func__)
        ),
    )


class _Converting(threading.local):
    """Return True if a thread makes a fake tensor of a real one, for which it needs a shape alone."""

    depth = 0


_converting = _Converting()


@unwatched
def _convert(original: Any, *args: Any, **kwargs: Any) -> Any:
    _converting.depth += 1
    try:
        return original(*args, **kwargs)
    finally:
        _converting.depth -= 1


@contextmanager
def _for_values() -> Iterator[None]:
    with no_dispatch(), nullcontext() if _converting.depth else watched():
        yield


@contextmanager
def _in_kernel(original: Any, mode: Any) -> Iterator[None]:
    with original(mode):
        # Computing shapes is not watched, and cannot be below another mode, such as a trace. A guard of the
        # original puts this back.
        dispatch_key._exclude(dispatch_key._KEY, True)
        yield


def _dispatch(
    original: Any,
    mode: Any,
    operation: Any,
    types: Any,
    args: Any = (),
    kwargs: Any = {},  # noqa: B006 - not written to
) -> Any:
    """``__torch_dispatch__``: C++ code asks for the device by it, Python code by the attribute."""
    inputs = all_tensors_in(args, kwargs)
    # As for all tensors, the host of C++ code is where the others are, or not settled; see ``Tag``.
    is_of_c = kwargs.get("device") == CPU and "pin_memory" not in kwargs
    if is_of_c and inputs:
        kwargs = {**kwargs, "device": None}
    answer = original(mode, operation, types, args, kwargs)
    if operation is ASK_FOR_DEVICE and answer.type == "cuda":
        return CPU
    is_floating = (
        all(hasattr(each, "is_floating") for each in inputs) if inputs else is_of_c
    )
    if is_floating and isinstance(answer, Tensor):
        answer.is_floating = True  # type: ignore[attr-defined]
    return answer


def _common_device(original: Any, operation: Any, args: Any) -> Any:
    """``FakeTensor._find_common_device``: what C++ code made comes to the device that it meets."""
    fakes = [each for each in args if isinstance(each, Tensor)]
    device = next((each.device for each in fakes if each.is_cuda), None)
    for each in fakes:
        if device is not None and hasattr(each, "is_floating"):
            each.fake_device = device  # type: ignore[attr-defined]
            del each.is_floating
    return original(operation, args)


def is_fake(tensor: Tensor) -> bool:
    """Return True if a tensor is a fake one."""
    return hasattr(tensor, "fake_device")
