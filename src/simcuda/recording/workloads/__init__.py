"""Cases that do what programs do: each builds a workload, and then does one step of it."""

from __future__ import annotations

from functools import partial

from simcuda.recording.case import Case, Work, seed_all
from simcuda.recording.workloads import models, telemetry, training
from simcuda.recording.workloads.tensors import Workload

# Recordings know a workload by its digest, which is given by hand: one that is written otherwise is the same
# case, and one that does other work needs another digest.
WORKLOADS = training.WORKLOADS | models.WORKLOADS | telemetry.WORKLOADS


def cases() -> list[Case]:
    """A case for each workload."""
    return [
        Case("workload/" + workload.__name__.replace("_", "-"), partial(_prepare, workload), digest)
        for workload, digest in WORKLOADS.items()
    ]


def _prepare(workload: Workload, seed: int) -> Work:
    steps = workload(seed_all(seed))
    next(steps)
    return lambda: next(steps, None)
