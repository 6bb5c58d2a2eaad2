"""Regions that may cost something: limits leave out what they set apart, and counts keep it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch

import simcuda

READ, COPY = "logged every 100 steps", "checkpoint"


@pytest.fixture
def x() -> Iterator[torch.Tensor]:
    """A tensor on a simulated device."""
    with simcuda.device():
        yield torch.ones(3, device="cuda")


def failure(work: Callable[[], object], **limits: int) -> list[str]:
    """The lines that a failing assertion prints."""
    limited: Any = limits
    with pytest.raises(AssertionError) as failed, simcuda.assert_at_most(**limited):
        work()
    return str(failed.value).splitlines()


def syncs(cost: simcuda.Measurement) -> dict[str, int]:
    """The waits for streams that were set apart, by reason."""
    return {
        reason: sum(site.count for site in sites if site.what == "stream_syncs")
        for reason, sites in cost.allowed.items()
    }


def test_limits_leave_out_what_a_region_sets_apart(x: torch.Tensor) -> None:
    """Its waits, copies with their bytes and allocations count to no limit; they stay in the counts."""
    limits = simcuda.assert_at_most(syncs=0, drains=0, d2h=0, d2h_bytes=0, allocations=0)
    with limits as cost, simcuda.allowed(READ):
        # The sum is allocated, then read: one wait, which drains, and one copy of 4 bytes.
        x.sum().item()
    assert (1, 1, 1, 4, 1) == (cost.syncs, cost.drains, cost.d2h, cost.d2h_bytes, cost.allocations)
    ((reason, sites),) = cost.allowed.items()
    assert READ == reason
    assert {"stream_syncs": 1, "drains": 1, "d2h": 1, "d2h_bytes": 4, "allocations": 1} == {
        site.what: site.count for site in sites
    }
    assert {site.line for site in sites} == {site.line for site in cost.sites}
    assert f"allowed: 1 syncs, 1 allocations, 1 d2h, 4 d2h_bytes, 1 drains: {READ}" in cost.report()


def test_a_failure_names_what_is_allowed_apart(x: torch.Tensor) -> None:
    """The line at fault is the one outside of the region; the region's reason stands below it."""

    def read() -> None:
        with simcuda.allowed(READ):
            x.sum().item()

    def work() -> None:
        for _ in range(3):
            read()
        x.sum().item()

    first, line, apart = failure(work, syncs=0)
    assert "syncs: 1, at most 0 allowed" == first
    assert line.endswith("in work: 1 stream_syncs  x.sum().item()")
    assert f"  and allowed: 3, {READ}" == apart


def test_one_line_in_and_outside_of_a_region(x: torch.Tensor) -> None:
    """Of a line that a region sets apart at times, the rest counts."""

    def read() -> None:
        x.sum().item()

    def work() -> None:
        read()
        with simcuda.allowed(READ):
            read()
        read()

    first, line, _ = failure(work, syncs=1)
    assert "syncs: 2, at most 1 allowed" == first
    assert "in read: 2 stream_syncs" in line


def test_the_innermost_of_nested_regions_counts(x: torch.Tensor) -> None:
    """After it, the outer one counts again; a decorator is a region too."""

    @simcuda.allowed(COPY)
    def save() -> torch.Tensor:
        return x.cpu()

    with simcuda.assert_no_syncs() as cost:
        with simcuda.allowed(READ):
            x.sum().item()
            save()
            x.sum().item()
        save()
    # Two reads around the first save, and both saves.
    assert {READ: 2, COPY: 2} == syncs(cost)


def test_a_region_ends_with_an_exception(x: torch.Tensor) -> None:
    """What comes after it counts."""

    def work() -> None:
        with pytest.raises(ZeroDivisionError), simcuda.allowed(READ):
            raise ZeroDivisionError
        x.sum().item()

    assert "syncs: 1, at most 0 allowed" == failure(work, syncs=0)[0]


def test_a_region_is_of_its_thread(x: torch.Tensor) -> None:
    """What another thread does meanwhile counts."""

    def work() -> None:
        other = threading.Thread(target=lambda: x.sum().item())
        with simcuda.allowed(READ):
            other.start()
            other.join()

    assert "syncs: 1, at most 0 allowed" == failure(work, syncs=0)[0]


def test_peaks_are_not_set_apart(x: torch.Tensor) -> None:
    """A peak is of a moment: the failure names the lines of the region too."""

    def work() -> None:
        with simcuda.allowed(READ):
            x + 1

    first, line = failure(work, peak_bytes=0)
    # Three numbers of 4 bytes.
    assert "peak_bytes: 12, at most 0 allowed" == first
    assert "in work: 1 allocations" in line


def test_where_nothing_is_measured_a_region_leaves_nothing_behind() -> None:
    """It yields nothing, and what is measured later is not set apart."""
    with simcuda.allowed(READ):
        pass
    with simcuda.device() as gpu, gpu.measure() as cost:
        torch.ones(1, device="cuda").item()
    assert (1, {}) == (cost.syncs, cost.allowed)


@pytest.mark.parametrize(
    ("reason", "error"), [("", ValueError), (" ", ValueError), (len, TypeError)], ids=str
)
def test_a_region_needs_a_reason(reason: Any, error: type[Exception]) -> None:
    """Also where the decorator is written without a call."""
    with pytest.raises(error):
        simcuda.allowed(cast("str", reason))
