"""The meter on real GPUs and the choice of a meter, with the simulation in the place of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import workload

import simcuda
from finding_tickets.measure.meter import CudaMeter, choose, chosen_name
from finding_tickets.measure.tasks import CannotMeasureError
from finding_tickets.workload import Point
from simcuda import real
from simcuda.real import CannotCountError, Environment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with two GPUs of 1 GiB, which do not tell hazards."""

    @contextmanager
    def device(count: int = 1, *, capacity: int | None = None) -> Iterator[Any]:
        with simcuda.device(count, capacity=capacity) as simulated:
            yield simulated

    found = Environment("NVIDIA H200", "13.0", "2.13.0+cu130")
    monkeypatch.setattr(real, "real_device", device)
    monkeypatch.setattr(real, "environment", lambda: found)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 29, 1 << 30))
    monkeypatch.setattr(simcuda.Measurement, "not_counted", ("hazards",))
    return monkeypatch


@contextmanager
def refuse(*_: Any, **__: Any) -> Iterator[Any]:
    """A machine without a GPU."""
    raise CannotCountError("there is no GPU")
    yield


def measure(function: Any, n: int = 100, **more: Any) -> Any:
    """One run on ``n`` floats."""
    return CudaMeter().measure(workload(n, **more), Point(n=n), function, ROOT)


def test_the_device_names_gpu_and_cuda(gpu: pytest.MonkeyPatch) -> None:
    """Evidence of another GPU or another version of CUDA is another file."""
    del gpu
    assert ("cuda", "NVIDIA H200, CUDA 13.0") == (CudaMeter().name, CudaMeter().device)


def test_a_run_is_counted_after_a_warm_up(gpu: pytest.MonkeyPatch) -> None:
    """One read of fresh data; the result is on the host, and coming there is not counted."""
    del gpu
    runs: list[None] = []

    def read(values: torch.Tensor) -> Any:
        runs.append(None)
        return values * 0 + values.sum().item() * 0 + 3

    trial = measure(read)
    counted = trial.metrics
    assert (1, 1, 0, 2) == (counted["syncs"], counted["d2h"], counted["raised"], len(runs))
    assert [3.0] * 100 == trial.result.tolist()


def test_points_that_need_more_than_there_is(gpu: pytest.MonkeyPatch) -> None:
    """More devices or more memory than this machine has, with both numbers."""
    del gpu
    meter = CudaMeter()
    devices = workload(2, 3, devices=lambda point: point.n)
    assert [None, "needs 3 devices, and this machine has 2"] == [
        meter.cannot_run(devices, point) for point in devices.sweep
    ]
    memory = workload(1, 2, memory=lambda point: point.n << 30)
    assert [None, "needs a device with 2147483648 bytes of memory, and this one has 1073741824"] == [
        meter.cannot_run(memory, point) for point in memory.sweep
    ]


def test_auto_takes_a_gpu_where_one_is_usable(gpu: pytest.MonkeyPatch) -> None:
    """And the simulation elsewhere, also where the GPU turns out not to count."""
    assert ("cuda", "cuda") == (choose("auto").name, chosen_name("auto"))
    gpu.setattr(real, "real_device", refuse)
    assert ("simulated", "simulated") == (choose("auto").name, chosen_name("auto"))


def test_who_asks_for_a_gpu_is_told_why_there_is_none(gpu: pytest.MonkeyPatch) -> None:
    """Nothing is simulated instead; and who asks for the simulation gets it beside a GPU."""
    assert "simulated" == choose("simulated").name
    gpu.setattr(real, "real_device", refuse)
    with pytest.raises(CannotMeasureError, match="no real GPU can be measured here: there is no GPU"):
        choose("cuda")
