"""The meter on the simulated device: what it counts around a run and what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import workload

from finding_tickets.claims.metrics import METRICS
from finding_tickets.measure.meter import SimulatedMeter, VariantRun, arguments
from finding_tickets.workload import Point

ROOT = Path(__file__).parents[2]
KEPT_OBJECTS: list[list[None]] = []


def measure(function: Any, n: int = 100, **more: Any) -> VariantRun:
    """One run on ``n`` floats."""
    jobs = workload(n, **more)
    return SimulatedMeter().measure(jobs, Point(n=n), function, ROOT)


def test_set_up_is_not_counted() -> None:
    """Building copies to the device; the function itself only waits once."""
    trial = measure(lambda values: values.sum().item())
    counted = trial.metrics
    assert (1, 1, 0) == (counted["syncs"], counted["d2h"], counted["h2d"])


def test_first_use_is_not_counted() -> None:
    """A table that is read from the device once and then remembered costs nothing in the measured run."""
    tables: list[float] = []

    def use_table(values: torch.Tensor) -> None:
        if not tables:
            tables.append(values.sum().item())

    assert (0, 1) == (measure(use_table).metrics["syncs"], len(tables))


def test_all_metrics_but_graph_breaks_are_there() -> None:
    """Graph breaks are counted by a run of their own."""
    assert set(METRICS) - {"graph_breaks"} == set(measure(torch.sum).metrics)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_build_draws_without_its_generator_is_the_same_each_time(device: str) -> None:
    """The generators of the host and of the device begin with the seed."""
    jobs = replace(workload(4), build=lambda *_: (torch.rand(4, device=device),))
    with SimulatedMeter().devices(1):
        (one,), (again,) = (arguments(jobs, Point(n=4), "cuda", 7) for _ in range(2))
        assert one.tolist() == again.tolist()


def test_a_result_comes_to_the_host_uncounted() -> None:
    """Results are compared on the host, which costs nothing."""
    trial = measure(lambda values: values * 0 + 3)
    assert ([3.0] * 100, 0) == (trial.result.tolist(), trial.metrics["d2h"])


def test_an_exception_ends_the_count() -> None:
    """What was counted until then is kept, with the error in words."""

    def fail(values: torch.Tensor) -> None:
        values.sum().item()
        raise ValueError("enough")

    trial = measure(fail)
    counted = trial.metrics
    line = fail.__code__.co_firstlineno + 2
    assert (1, 1, None) == (counted["raised"], counted["syncs"], trial.result)
    assert f"tests/measure/test_simulated.py:{line}: ValueError: enough" == trial.error


def test_memory_of_the_device_is_the_workloads_choice() -> None:
    """With 4 MiB of memory, the eleventh copy of 400 kB ends in an error that ``ooms`` counts."""
    trial = measure(lambda values: [values.repeat(1000) for _ in range(11)], memory=lambda _: 4 << 20)
    assert (1, 1) == (trial.metrics["raised"], trial.metrics["ooms"])
    assert "OutOfMemoryError" in str(trial.error)


def test_running_out_of_host_memory_is_no_result() -> None:
    """That this machine is too small says nothing about the code."""

    def greedy(_: torch.Tensor) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        measure(greedy)


def test_settings_do_not_leak() -> None:
    """A variant that changes torch's settings does not change what the next one computes."""

    def meddle(_: torch.Tensor) -> None:
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)

    measure(meddle)
    assert (torch.float32, True) == (torch.get_default_dtype(), torch.is_grad_enabled())


def test_memory_that_only_cycles_keep_is_retained() -> None:
    """No collection hides it: 400 bytes of 100 floats stay until the collector would run."""

    def tie(values: torch.Tensor) -> None:
        knot: list[Any] = [values * 2]
        knot.append(knot)
        del knot
        # Enough new objects for the collector to have run many times, were it on.
        KEPT_OBJECTS[:] = [[] for _ in range(50_000)]

    assert 400 == measure(tie).metrics["retained_bytes"]


def test_a_point_gets_its_devices() -> None:
    """Variants meet as many devices as the workload says, and no more."""
    count = measure(lambda _: torch.cuda.device_count(), devices=lambda _: 3).result
    assert 3 == count
