"""Devices that are given by their number alone, as in ``torch.zeros(3, device=0)``.

A number means an accelerator, which C++ code of a build without CUDA does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.jit import _builtins

from simcuda.torch_api.patches import Patches
from simcuda.torch_api.tensor_api import device_of

C_KNOWS_NUMBERS = torch._C._has_cuda
FACTORIES = (
    *(
        "arange",
        "bartlett_window",
        "blackman_window",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
    ),
    *("eye", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace"),
    *("normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
    *("randperm", "range", "scalar_tensor", "tril_indices", "triu_indices", "zeros", "zeros_like"),
)
METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros")


def install(patches: Patches) -> None:
    """Let numbers say on which device a tensor is made, and what ``torch.nn.Module.to`` moves to."""
    patches.set(torch._C._nn, _parse_to=_destination(torch._C._nn._parse_to))
    if C_KNOWS_NUMBERS:
        return
    factories = {name: _taking_numbers(getattr(torch, name)) for name in FACTORIES}
    # TorchScript finds functions of C++ by what they are.
    known: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]  # not annotated
    found = {id(factory): known[id(getattr(torch, name))] for name, factory in factories.items()}
    patches.set(_builtins, _builtin_table=known | found)
    patches.set(torch, **factories)
    patches.set(Tensor, **{name: _taking_numbers(getattr(Tensor, name)) for name in METHODS})


def _taking_numbers(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Tensor:
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = device_of(kwargs["device"])
        return original(*args, **kwargs)

    return make


def _destination(original: Callable[..., Any]) -> Callable[..., Any]:
    def parse_to(*how: Any, **named: Any) -> Any:
        asked = named.pop("tensor", None) if "tensor" in named else how[0] if how else None
        if isinstance(asked, Tensor):
            return original(asked.device, asked.dtype, *how[1:], **named)
        if isinstance(asked, int):
            return original(device_of(asked), *how[1:], **named)
        if isinstance(named.get("device"), int):
            named["device"] = device_of(named["device"])
        return original(*how, **named)

    return parse_to
