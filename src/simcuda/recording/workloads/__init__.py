"""Cases that do what programs do: each is a function that builds a workload and returns one step of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import torch

from simcuda.recording.case import Case, Group, Work, digest, seed_all
from simcuda.recording.workloads import data, learning, models, telemetry, training

Workload = Callable[[torch.Generator], Work]


def groups() -> list[Group]:
    """One group with a case for each workload."""
    modules = (training, models, learning, telemetry, data)
    return [
        Group("workload", lambda: [_case(workload) for module in modules for workload in module.WORKLOADS])
    ]


def _case(workload: Workload) -> Case:
    name = workload.__name__.replace("_", "-")
    return Case(f"workload/{name}", partial(_prepare, workload), digest(inspect.getsource(workload)))


def _prepare(workload: Workload, seed: int) -> Work:
    return workload(seed_all(seed))
