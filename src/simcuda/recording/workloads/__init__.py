"""Cases that do what programs do: each builds a workload, and then does one step of it."""

from __future__ import annotations

from functools import partial

from simcuda.recording.case import Case, Group, Work, seed_all
from simcuda.recording.workloads import models, telemetry, training
from simcuda.recording.workloads.tensors import Workload

# Recordings know a workload by its digest, which is given by hand: one that is written otherwise is the same
# case, and one that does other work needs another digest.
WORKLOADS = training.WORKLOADS | models.WORKLOADS | telemetry.WORKLOADS


def groups() -> list[Group]:
    """One group with a case for each workload."""
    names = {workload: workload.__name__.replace("_", "-") for workload in WORKLOADS}
    cases = [
        Case(f"workload/{names[workload]}", partial(_prepare, workload), digest)
        for workload, digest in WORKLOADS.items()
    ]
    return [Group("workload", lambda: cases)]


def _prepare(workload: Workload, seed: int) -> Work:
    steps = workload(seed_all(seed))
    next(steps)
    return lambda: next(steps, None)
