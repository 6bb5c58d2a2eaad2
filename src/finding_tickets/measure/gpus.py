"""Which GPUs there are, and how many of them a workload needs; each for a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from finding_tickets.measure.loading import load_workload

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(_: object = None) -> list[str]:
    """The names, as ``CUDA_VISIBLE_DEVICES`` has them, of the GPUs that this process may use."""
    count = torch.cuda.device_count()
    named = os.environ.get(VARIABLE)
    return [name.strip() for name in named.split(",")][:count] if named else list(map(str, range(count)))


def called(name: str) -> list[str]:
    """Those of the visible GPUs that have this name."""
    return [gpu for place, gpu in enumerate(visible()) if torch.cuda.get_device_name(place) == name]


def devices(_: object = None) -> list[str]:
    """What the visible GPUs are called, each with the version of CUDA."""
    names = map(torch.cuda.get_device_name, range(torch.cuda.device_count()))
    return [f"{name}, CUDA {torch.version.cuda}" for name in names]


def wanted(order: dict[str, str]) -> int:
    """The most devices that a point of a sweep needs; of ``verifier`` in ``root`` with ``code``."""
    workload = load_workload(order["verifier"], Path(order["root"]), Path(order["code"]))
    return max(map(workload.devices, workload.sweep), default=1)
