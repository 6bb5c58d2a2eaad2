"""What wakes a simulation that sleeps until a device is used, beside the functions that are replaced anyway.

While it sleeps, code that uses no device runs at torch's own speed. Whatever names a device wakes it.

Known limitations:
    Code of C++ that makes a tensor on a device by itself, on a thread that sleeps, does not: it fails as it
    does without CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.utils._device

from simcuda.device.dispatch_key import wake
from simcuda.torch_api.factories import taking_devices
from simcuda.torch_api.patches import Patches, as_method

FACTORIES: tuple[tuple[Any, str], ...] = (
    *((torch, name) for name in ("from_file", "empty_quantized", "_efficientzerotensor")),
    *((torch.fft, name) for name in ("fftfreq", "rfftfreq")),
)
"""Functions that take a device, and no number for it."""


def install(patches: Patches) -> None:
    """Install the replacements."""
    for owner, name in FACTORIES:
        patches.set(owner, **{name: taking_devices(getattr(owner, name))})
    for kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
        patches.set(kind, __call__=as_method(taking_devices(kind.__call__)))
    # Functions that are given no device take that of a context, or the default one.
    context: Any = torch.utils._device.DeviceContext
    patches.set(context, __init__=as_method(partial(_enter, context.__init__)))


def _enter(original: Callable[..., None], context: Any, device: Any) -> None:
    if torch.device(device).type == "cuda":
        wake()
    original(context, device)
