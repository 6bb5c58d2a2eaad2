"""Tensors by device and type, as multi-tensor optimizers group them; C++ would see one device only."""

from __future__ import annotations

from typing import Any

import torch

Group = tuple[list[list[Any]], list[int]]


def group_by_device_and_dtype(
    tensor_lists: list[list[Any]], with_indices: bool = False
) -> dict[tuple[torch.device, torch.dtype], Group]:
    """The lists cut into groups by the device and type of the first list's tensors, which are all present.

    Tensors at one position of the lists belong together and stay in their order. ``with_indices`` adds the
    positions.
    """
    groups: dict[tuple[torch.device, torch.dtype], Group] = {}
    for position, tensor in enumerate(tensor_lists[0]):
        key = (tensor.device, tensor.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensor_lists], []))
        for group, tensors in zip(lists, tensor_lists, strict=True):
            if tensors:
                group.append(tensors[position])
        if with_indices:
            indices.append(position)
    return groups
