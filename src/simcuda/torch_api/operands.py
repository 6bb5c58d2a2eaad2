"""Decide from the operands of an operation its device, and whether it adds up gradients.

If a tensor gets several gradients, the autograd engine adds the new one in place to the old one, provided
that nothing else holds it. Here Python holds every storage too, so the engine would make a new tensor and
raise the peak. Therefore the addition is done in place here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from simcuda.basis import operations
from simcuda.costs.call import tensors_in
from simcuda.costs.copies import same_bytes
from simcuda.costs.traits import OperationTraits
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST, Tag, device_of_tag

EXPECTED = "Expected all tensors to be on the same device, but"
INDEXING = ("aten.index.", "aten.index_put")
CHECKED_BY = {"index_select": "_index_select"}
"""Operations that CUDA's message names otherwise."""

# References that exist in any case: torch, two tuples of arguments, a local name and the counting itself.
_HELD_BY_THE_ARGUMENTS = 6
# Besides the engine: the argument itself, and what Python's wrapper holds.
_HELD_BY_THE_ENGINE = 3
_STORAGE_HELD_BY_ONE_TENSOR = 2

ADDING = frozenset(f"{name}Backward0" for name in operations("adding gradients"))
"""Formulas that add tensors themselves."""


def common_device(
    machine: Machine,
    traits: OperationTraits,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensors: Sequence[Tensor],
    tags: Sequence[Tag | None],
) -> int:
    """The index of the device an operation runs on, or ``HOST``.

    What C++ code made for itself comes to the device that it meets here.

    Raises:
        RuntimeError: The tensors lie on several devices. 0-d host tensors may join in elementwise operations,
            also those on lists.
    """
    devices = {*map(device_of_tag, tags)}
    if len(devices) == 1 and HOST not in devices:
        return devices.pop()
    # The first device among the tensors is the one CUDA's message names.
    device = next((index for index in map(device_of_tag, tags) if index != HOST), HOST)
    if device == HOST:
        floats = [tag is not None and tag.floating for tag in tags]
        # Tensors without dimensions may be numbers, which C++ code makes tensors of for any device.
        meets_host = any(
            tensor.dim() and not is_floating
            for tensor, is_floating in zip(tensors, floats, strict=True)
        )
        if len(tags) > 1 and any(floats) and meets_host:
            machine.settle(tags)
        return device
    for tensor, tag in zip(tensors, tags, strict=True):
        if tag is not None and tag.device == device:
            continue
        # What C++ code makes of a number, with the options of a device tensor, is on that device.
        if tag is not None and tag.floating:
            machine.adopt(tag, device)
            continue
        if device_of_tag(tag) == HOST and _may_stay_on_host(
            traits, args, tensor, device
        ):
            continue
        other = str(tensor.device)
        raise RuntimeError(
            _message(traits, args, kwargs, tensor, other, str(machine.devices[device]))
        )
    return device


def _may_stay_on_host(
    traits: OperationTraits, args: Sequence[Any], host_tensor: Tensor, device: int
) -> bool:
    if traits.op.startswith(INDEXING):
        # Indices may lie on the host, but what is indexed and what is written there have to be together.
        indexed, indices, value = (*args, None)[:3]
        if host_tensor is indexed and any(
            index is not None and index.is_cuda for index in indices
        ):
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
            )
        if host_tensor is indexed or (host_tensor is value and value.dim()):
            raise RuntimeError(
                f"{EXPECTED} found at least two devices, cuda:{device} and cpu!"
            )
    return traits.takes_host_tensors or (
        traits.takes_host_scalars and not host_tensor.dim()
    )


def _message(
    traits: OperationTraits,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensor: Tensor,
    other: str,
    device: str,
) -> str:
    if traits.takes_host_scalars:
        return f"{EXPECTED} found at least two devices, {device} and {other}!"
    values = {**dict(zip(traits.names, args, strict=False)), **kwargs}
    name = next(
        (n for n, v in values.items() if any(tensor is t for t in tensors_in((v,)))),
        "tensors",
    )
    method = traits.op.removeprefix("aten.").removesuffix(".default").replace(".", "_")
    return (
        f"{EXPECTED} got {name} is on {other}, different from other tensors on {device} "
        f"(when checking argument in method wrapper_CUDA_{CHECKED_BY.get(method, method)})"
    )


def joins_gradients(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bool:
    """Return True if the engine adds to a gradient that nothing else holds, in a backward pass."""
    if kwargs or len(args) != 2 or torch.is_grad_enabled():
        return False
    old = args[0]
    if (
        not isinstance(old, Tensor)
        or old is args[1]
        or sys.getrefcount(old) > _HELD_BY_THE_ARGUMENTS
    ):
        return False
    # Anything else that holds the tensor or its storage would see the sum.
    storage = old.untyped_storage()
    return (
        cast("Any", old)._use_count() <= _HELD_BY_THE_ENGINE
        and torch._C._storage_Use_Count(storage._cdata) <= _STORAGE_HELD_BY_ONE_TENSOR
        and isinstance(args[1], Tensor)
        and old.dtype == args[1].dtype
        and old.shape == args[1].shape
        and same_bytes(old, old)
        and torch._C._current_autograd_node().name() not in ADDING
    )
