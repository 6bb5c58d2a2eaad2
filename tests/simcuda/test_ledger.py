"""Which source line is held to account for what happens on the device."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest
import torch

from simcuda import Measurement, SimulatedCuda
from simcuda.ledger import ChangedCountsError


def lines_that_wait(cost: Measurement) -> list[tuple[str, int]]:
    """Function and line of each wait."""
    return [(site.function, site.line) for site in cost.sites if site.what == "stream_syncs"]


class Reading(torch.nn.Module):
    """A layer that reads its input on the host."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read, then pass on."""
        x[0].item()
        return x


READING_LINE = inspect.getsourcelines(Reading.forward)[1] + 2


def test_torch_between_two_lines_of_the_user_is_passed_over(gpu: SimulatedCuda) -> None:
    """The line within the user's ``forward`` answers, not the one that called the model."""
    model = torch.nn.Sequential(Reading(), torch.nn.ReLU())
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        model(x)
    assert [("forward", READING_LINE)] == lines_that_wait(cost)
    assert {__file__} == {site.file for site in cost.sites}


def test_the_standard_library_is_passed_over(gpu: SimulatedCuda) -> None:
    """A read by way of ``functools`` and ``map`` is that of the line which uses them."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        list(map(functools.partial(float), x))
    line = inspect.getsourcelines(test_the_standard_library_is_passed_over)[1] + 4
    assert [("test_the_standard_library_is_passed_over", line)] == lines_that_wait(cost)
    assert [3] == [site.count for site in cost.sites if site.what == "stream_syncs"]


def test_the_line_that_calls_backward_answers_for_it(gpu: SimulatedCuda) -> None:
    """What the backward pass allocates is put to the line that starts it; a hook answers for itself."""
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    loss = (leaf * 2).sum()

    def hook(gradient: torch.Tensor) -> None:
        gradient.sum().item()

    watch: Any = leaf.register_hook
    watch(hook)
    with gpu.measure() as cost:
        torch.autograd.backward(loss)
    allocating = {site.function for site in cost.sites if site.what == "allocations"}
    assert {"hook", "test_the_line_that_calls_backward_answers_for_it"} == allocating
    assert ["hook"] == [function for function, _ in lines_that_wait(cost)]


def test_nothing_is_counted_outside_a_measurement(gpu: SimulatedCuda) -> None:
    """What happens before and after the block is not part of it."""
    x = torch.ones(3, device="cuda")
    x.sum().item()
    with gpu.measure() as cost:
        pass
    x.sum().item()
    assert (0, 0, 0, ()) == (cost.syncs, cost.launches, cost.allocations, cost.sites)


def test_a_measurement_ends_with_its_block_even_by_an_exception(gpu: SimulatedCuda) -> None:
    """An exception closes the measurement, with what had been counted."""
    x = torch.zeros((), device="cuda", dtype=torch.int64)
    measurements: list[Measurement] = []

    def divide() -> None:
        with gpu.measure() as cost:
            measurements.append(cost)
            1 / x.item()

    with pytest.raises(ZeroDivisionError):
        divide()
    x.item()
    assert 1 == measurements[0].syncs


def test_the_debug_mode_of_torch_warns_and_raises(gpu: SimulatedCuda) -> None:
    """Under ``set_sync_debug_mode`` waits for a stream warn or raise, and waits for the device do not."""
    x = torch.ones((), device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    assert 1 == torch.cuda.get_sync_debug_mode()
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        x.item()
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        x.item()
    torch.cuda.synchronize()
    assert gpu.live_bytes() > 0


def test_counts_that_the_measured_code_changes_are_found_out(gpu: SimulatedCuda) -> None:
    """Whoever sets a count is told which, and nobody can replace the counting of one ledger alone."""

    def cheat() -> None:
        with gpu.measure() as cost:
            torch.ones(3, device="cuda").sum().item()
            cost.stream_syncs = cost.d2h = 0

    with pytest.raises(ChangedCountsError, match=r"^changes what was counted: d2h, stream_syncs$"):
        cheat()
    with pytest.raises(AttributeError, match="read-only"):
        setattr(gpu._machine.ledger, "count", cheat)  # noqa: B010 - mypy would refuse it too
