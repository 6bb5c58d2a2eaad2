"""Cases that do what programs do: each is a function that builds a workload and returns one step of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import torch

from simcuda.recording.case import Case, Group, Work, digest, seed_all
from simcuda.recording.workloads import models, telemetry, training

Workload = Callable[[torch.Generator], Work]


def groups() -> list[Group]:
    """One group with a case for each workload."""
    cases = []
    for workload in (w for module in (training, models, telemetry) for w in module.WORKLOADS):
        name = workload.__name__.replace("_", "-")
        source = digest(inspect.getsource(workload))
        cases.append(Case(f"workload/{name}", partial(_prepare, workload), source))
    return [Group("workload", lambda: cases)]


def _prepare(workload: Workload, seed: int) -> Work:
    return workload(seed_all(seed))
