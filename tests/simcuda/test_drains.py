"""Which waits leave the GPU without work: ``drains``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

DEVICES = 2

STEPS = 6


def new_stream(**how: Any) -> Any:
    """A stream of the simulated ``torch.cuda``, whose annotations are incomplete."""
    make: Any = torch.cuda.Stream
    return make(**how)


def new_event() -> Any:
    """An event of the simulated ``torch.cuda``."""
    make: Any = torch.cuda.Event
    return make()


def test_a_wait_for_a_stream_or_a_device_drains(gpu: SimulatedCuda) -> None:
    """Nothing can be queued behind a read, a blocking copy or a wait for all work: all four drain."""
    x = torch.ones(4, device="cuda")
    with gpu.measure() as cost:
        x.sum().item()
        (x + 1).cpu()
        (x + 1).sum()
        torch.cuda.current_stream().synchronize()
        (x + 1).sum()
        torch.cuda.synchronize()
    assert (4, 4) == (cost.syncs, cost.drains)


def test_a_wait_for_an_event_drains_unless_newer_work_is_behind_it(gpu: SimulatedCuda) -> None:
    """An event with a kernel queued after it is no drain; once nothing is queued after it, it is one."""
    x = torch.ones(4, device="cuda")
    early, late = new_event(), new_event()
    early.record()
    x.add_(1)
    late.record()
    with gpu.measure() as cost:
        early.synchronize()
        assert (1, 0) == (cost.event_syncs, cost.drains)
        late.synchronize()
    assert (2, 1) == (cost.event_syncs, cost.drains)


def test_an_idle_stream_drains_again(gpu: SimulatedCuda) -> None:
    """After a second wait the stream holds no work either: it would drain without the first one."""
    torch.ones(4, device="cuda")
    with gpu.measure() as cost:
        torch.cuda.synchronize()
        torch.cuda.synchronize()
        new_stream().synchronize()
    assert (3, 3) == (cost.syncs, cost.drains)


def test_what_other_streams_do_is_not_asked(gpu: SimulatedCuda) -> None:
    """A stream that is empty has drained, though one that nothing waited for is busy."""
    x, side = torch.ones(4, device="cuda"), new_stream()
    x.add_(1)
    with gpu.measure() as cost:
        side.synchronize()
    assert 1 == cost.drains


@pytest.mark.parametrize(("newer", "drains"), [(True, 0), (False, 1)])
def test_a_copy_on_a_stream_of_its_own_is_a_pipelined_read_too(
    gpu: SimulatedCuda, newer: bool, drains: int
) -> None:
    """A wait for a copy waits for what made its data: that stream has work left if the host launched more."""
    x, side = torch.ones(4, device="cuda"), new_stream()
    with gpu.measure() as cost:
        flag = x.sum()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            on_host = flag.to("cpu", non_blocking=True)
            copied = side.record_event()
        if newer:
            x.add_(1)
        copied.synchronize()
        assert 4.0 == on_host.item()
    assert (1, drains) == (cost.syncs, cost.drains)


def test_a_busy_device_does_not_keep_another_from_draining(gpu: SimulatedCuda) -> None:
    """Of two devices, the one that is waited for idles, whatever the source of a copy to it does next."""
    x = torch.ones(4, device="cuda:1")
    y = x.to("cuda:0")
    x.add_(1)
    with gpu.measure() as cost:
        y.sum().item()
    assert (1, 1) == (cost.syncs, cost.drains)


def test_emptying_the_cache_waits_as_the_host_does(gpu: SimulatedCuda) -> None:
    """Memory that another stream used costs a wait, which drains that stream unless it has newer work."""
    for newer in (False, True):
        x, side = torch.ones(4, device="cuda"), new_stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            kept = x + 1
        x.record_stream(side)
        del x
        if newer:
            with torch.cuda.stream(side):
                kept.add_(1)
        with gpu.measure() as cost:
            torch.cuda.empty_cache()
        assert (1, 0 if newer else 1) == (cost.event_syncs, cost.drains)


# The loop of a text generator: each step makes a number on the device, and the host stops at the first one
# that is a multiple of ``END``. With 1, 2, 3, ... that is step ``END``.
END = STEPS


def step(last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The next number, and on the device whether it is the last."""
    made = last + 1
    return made, made.remainder(END).eq(0)


def generate_reading_every_step(start: torch.Tensor) -> torch.Tensor:
    """As found: the host reads the flag of a step before it launches the next."""
    made, flag = step(start)
    while not flag.item():
        made, flag = step(made)
    return made


def generate_one_step_behind(start: torch.Tensor) -> torch.Tensor:
    """The fix: the host launches a step, then waits for the flag of the step before it."""
    flags = [torch.empty(1, dtype=torch.bool, pin_memory=True) for _ in range(2)]
    copied = (new_event(), new_event())
    previous, made, number = start, start, 0
    while True:
        previous, (made, flag) = made, step(made)
        flags[number % 2].copy_(flag, non_blocking=True)
        copied[number % 2].record()
        if number:
            copied[(number - 1) % 2].synchronize()
            if flags[(number - 1) % 2]:
                return previous
        number += 1


@pytest.mark.parametrize(
    ("generate", "drains"), [(generate_reading_every_step, STEPS), (generate_one_step_behind, 0)]
)
def test_a_stop_flag_that_is_read_one_step_late_drains_nothing(
    gpu: SimulatedCuda, generate: Callable[[torch.Tensor], torch.Tensor], drains: int
) -> None:
    """Waits stay, one a step, and drains go to 0: the change of transformers' pull request 47975."""
    start = torch.zeros(1, dtype=torch.int64, device="cuda")
    with gpu.measure() as cost:
        made = generate(start)
    # Both wait for the flags of all steps; the fix has launched one step more by then, and drops its number.
    assert (STEPS, drains, 0) == (cost.syncs, cost.drains, cost.hazards)
    assert END == made.item()
