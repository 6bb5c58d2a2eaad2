"""Operations that CUDA refuses where ``torch.use_deterministic_algorithms`` asks for equal results.

Source: calls of ``alertNotDeterministic`` in ATen/native/cuda, and the page of that function. What the host
refuses too, it refuses by itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from simcuda.basis import in_aten, operations

Given = Mapping[str, Any]

is_deterministic: Callable[[], bool] = torch._C._get_deterministic_algorithms
"""Return whether deterministic algorithms are asked for."""

ALWAYS: dict[str, str] = dict(operations("without order"))
"""What CUDA calls itself as it refuses, by operation."""

if torch.__version__ < "2.14":
    ALWAYS["reflection_pad2d_backward"] = "reflection_pad2d_backward_cuda"

MODE_OF_MAXIMA = 2


def _is_floating(given: Given) -> bool:
    return bool(given["self"].is_floating_point() or given["self"].is_complex())


SOMETIMES: Mapping[str, tuple[str, Callable[[Given], Any]]] = {
    "put_": ("put_", lambda given: given.get("accumulate")),
    "histc": ("_histc_cuda with floating point input", _is_floating),
    "bincount": ("_bincount_cuda", lambda given: given.get("weights") is not None),
    **dict.fromkeys(
        ("median", "nanmedian"),
        ("median CUDA with indices output", lambda given: given.get("dim") is not None),
    ),
    **dict.fromkeys(
        ("_embedding_bag_backward", "_embedding_bag_dense_backward"),
        (
            "embedding_bag_backward_cuda_max",
            lambda given: given.get("mode") == MODE_OF_MAXIMA,
        ),
    ),
    # A sum and a mean are written in order, by index_put.
    **dict.fromkeys(
        ("scatter_reduce", "scatter_reduce_"),
        ("scatter_reduce_cuda_prod_", lambda given: given.get("reduce") == "prod"),
    ),
    **dict.fromkeys(
        ("scatter", "scatter_"),
        ("scatter_reduce_cuda_kernel", lambda given: given.get("reduce") == "multiply"),
    ),
    # From 2.14 on another algorithm adds up.
    **dict.fromkeys(
        ("cumsum", "cumsum_"),
        (
            "cumsum_cuda_kernel",
            lambda given: torch.__version__ < "2.14" and _is_floating(given),
        ),
    ),
}
"""The same for calls with certain arguments, which are given by name."""

REFUSED = in_aten((*ALWAYS, *SOMETIMES))


def fills_memory() -> bool:
    """Return whether uninitialised memory is filled, by a kernel for each tensor."""
    return (
        is_deterministic() and torch._C._get_deterministic_fill_uninitialized_memory()
    )


def refuse(packet: str, given: Given) -> None:
    """Fail or warn like CUDA if results have to be deterministic and a call's are not.

    Raises:
        RuntimeError: The operation has no such implementation.
    """
    if not torch.are_deterministic_algorithms_enabled():
        return
    name = packet.removeprefix("aten.")
    caller, applies = (ALWAYS[name], None) if name in ALWAYS else SOMETIMES[name]
    if applies is not None and not applies(given):
        return
    message = f"{caller} does not have a deterministic implementation, but you set"
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(f"{message} 'torch.use_deterministic_algorithms(True)'.")
    warnings.warn(
        f"{message} 'torch.use_deterministic_algorithms(True, warn_only=True)'.",
        stacklevel=2,
    )
