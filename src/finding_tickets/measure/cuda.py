"""The meter for a real GPU: counts with CUPTI and the allocator's own records, where there is a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import simcuda
from finding_tickets.measure.counting import count
from finding_tickets.measure.report import CannotMeasureError
from finding_tickets.measure.trial import Function, Trial, steady_state
from finding_tickets.workload import Point, Workload
from simcuda import real


class CudaMeter:
    """Runs every variant at every point on the GPUs of this machine.

    Raises:
        CannotMeasureError: There is no GPU here that can be measured, with the reason.
    """

    name = "cuda"

    def __init__(self) -> None:
        try:
            with real.real_device():
                self.device = _device()
        except real.CannotCountError as error:
            raise CannotMeasureError(f"no real GPU can be measured here: {error}") from None

    def cannot_run(self, workload: Workload, point: Point) -> str | None:
        """The point needs more devices or more memory than there are."""
        wanted, there = workload.devices(point), torch.cuda.device_count()
        if wanted > there:
            return f"needs {wanted} devices, and this machine has {there}"
        wanted_bytes, bytes_there = workload.memory(point) or 0, torch.cuda.mem_get_info()[1]
        if wanted_bytes > bytes_there:
            return f"needs a device with {wanted_bytes} bytes of memory, and this one has {bytes_there}"
        return None

    def measure(self, workload: Workload, point: Point, function: Function, root: Path) -> Trial:
        """Count one run of ``function`` on fresh data.

        Raises:
            CannotMeasureError: The profiler lost something.
        """
        devices, capacity = max(1, workload.devices(point)), workload.memory(point)
        with steady_state(), self.devices(devices, capacity) as gpu:
            return count(gpu, workload, point, function, root)

    @contextmanager
    def devices(self, number: int, capacity: int | None = None) -> Iterator[simcuda.Gpu]:
        """Real devices, with so many bytes of memory or all that they have.

        Raises:
            CannotMeasureError: There are fewer, or the profiler lost something.
        """
        try:
            with real.real_device(number, capacity=capacity) as gpu:
                yield gpu
        except real.CannotCountError as error:
            raise CannotMeasureError(str(error)) from None


def _device() -> str:
    """What evidence names the environment by: the GPU and its version of CUDA."""
    found = real.environment()
    return f"{found.gpu}, CUDA {found.cuda}"
