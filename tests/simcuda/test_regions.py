"""Regions that may cost something: limits leave out what they set apart, and counts keep it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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


def test_limits_leave_out_what_a_region_sets_apart(x: torch.Tensor) -> None:
    """Its waits, copies with their bytes and allocations count to no limit; they stay in the counts."""
    with simcuda.assert_at_most(syncs=0, drains=0, d2h=0, d2h_bytes=0, allocations=0) as cost:
        with simcuda.allowed(READ):
            # The sum is allocated, then read: one wait, which drains, and one copy of 4 bytes.
            x.sum().item()
    assert (1, 1, 1, 4, 1) == (cost.syncs, cost.drains, cost.d2h, cost.d2h_bytes, cost.allocations)
    ((reason, sites),) = cost.allowed.items()
    assert READ == reason
    assert {"stream_syncs": 1, "drains": 1, "d2h": 1, "d2h_bytes": 4, "allocations": 1} == {
        site.what: site.count for site in sites
    }
    assert {site.line for site in sites} == {site.line for site in cost.sites}


def test_a_failure_names_what_is_allowed_apart(x: torch.Tensor) -> None:
    """The lines at fault are those outside of the region; its reason stands below them."""
    with pytest.raises(AssertionError) as failed, simcuda.assert_no_syncs() as cost:
        for _ in range(3):
            with simcuda.allowed(READ):
                x.sum().item()
        x.sum().item()
    first, line, apart = str(failed.value).splitlines()
    assert "syncs: 1, at most 0 allowed" == first
    assert f":{max(site.line for site in cost.sites)} in " in line
    assert f"  and allowed: 3, {READ}" == apart
    assert f"allowed: 3 syncs, 3 allocations, 3 d2h, 12 d2h_bytes, 3 drains: {READ}" in cost.report()


def test_one_line_in_and_outside_of_a_region(x: torch.Tensor) -> None:
    """Of a line that a region sets apart at times, the rest counts."""

    def read() -> None:
        x.sum().item()

    with pytest.raises(AssertionError, match=r"^syncs: 2, at most 1 allowed\n.*: 2 stream_syncs"):
        with simcuda.assert_at_most(syncs=1):
            read()
            with simcuda.allowed(READ):
                read()
            read()


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
    syncs = {
        reason: sum(site.count for site in sites if site.what == "stream_syncs")
        for reason, sites in cost.allowed.items()
    }
    # Two reads around the first save, and both saves.
    assert {READ: 2, COPY: 2} == syncs


def test_a_region_ends_with_an_exception(x: torch.Tensor) -> None:
    """What comes after it counts."""
    with pytest.raises(AssertionError, match="syncs: 1, at most 0"), simcuda.assert_no_syncs():
        with pytest.raises(ZeroDivisionError), simcuda.allowed(READ):
            raise ZeroDivisionError
        x.sum().item()


def test_a_region_is_of_its_thread(x: torch.Tensor) -> None:
    """What another thread does meanwhile counts."""
    with pytest.raises(AssertionError, match="syncs: 1, at most 0"), simcuda.assert_no_syncs():
        with simcuda.allowed(READ):
            other = threading.Thread(target=lambda: x.sum().item())
            other.start()
            other.join()


def test_peaks_are_not_set_apart(x: torch.Tensor) -> None:
    """A peak is of a moment: the failure names the lines of the region too."""
    with pytest.raises(AssertionError, match=r"peak_bytes: \d+, at most 0 allowed\n.*allocations"):
        with simcuda.assert_at_most(peak_bytes=0), simcuda.allowed(READ):
            x + 1


def test_where_nothing_is_measured_a_region_does_nothing() -> None:
    """It yields nothing, and leaves nothing behind."""
    with simcuda.allowed(READ) as yielded:
        assert yielded is None
    with simcuda.device() as gpu, gpu.measure() as cost:
        torch.ones(1, device="cuda").item()
    assert {} == cost.allowed


@pytest.mark.parametrize(("reason", "error"), [("", ValueError), (" ", ValueError), (len, TypeError)], ids=str)
def test_a_region_needs_a_reason(reason: Any, error: type[Exception]) -> None:
    """Also where the decorator is written without a call."""
    with pytest.raises(error):
        simcuda.allowed(cast("str", reason))
