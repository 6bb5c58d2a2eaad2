"""Sure facts about CUDA, counted on a real device where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from simcuda import Measurement
from simcuda.real import RealCuda, environment, real_device, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

SOME = 1000
"""Elements; 4000 bytes in 32 bits, which take 4096 bytes in blocks of 512."""


@pytest.fixture(scope="module")
def gpu() -> Iterator[RealCuda]:
    """The device, after a first use of all that is measured below."""
    with real_device() as device:
        values = torch.ones(SOME, device="cuda")
        values.add(1).add_(values).sum().item()
        values.cpu().cuda()
        torch.unique(values, dim=0)
        yield device


def test_a_read_waits_once(gpu: RealCuda) -> None:
    """``item()`` copies 4 bytes to the host and waits for the stream, at this line."""
    value = torch.ones((), device="cuda")
    with gpu.measure() as cost:
        value.item()
    assert (1, 1, 4, 0, 0) == (cost.stream_syncs, cost.d2h, cost.d2h_bytes, cost.launches, cost.h2d)
    waits = [(site.file, site.function, site.count) for site in cost.sites if site.what == "stream_syncs"]
    assert [(__file__, "test_a_read_waits_once", 1)] == waits


def test_an_addition_is_one_kernel_and_one_allocation(gpu: RealCuda) -> None:
    """Of what the result takes, without a wait."""
    values = torch.ones(SOME, device="cuda")
    with gpu.measure() as cost:
        result = values + 1
    assert (1, 0, 1, 4 * SOME) == (cost.launches, cost.syncs, cost.allocations, cost.largest_allocation)
    assert (4 * SOME, 4096, 4 * SOME) == (cost.peak_bytes, cost.peak_allocated_bytes, cost.retained_bytes)
    del result
    assert 0 == cost.retained_bytes


def test_a_blocking_copy_to_the_device(gpu: RealCuda) -> None:
    """From pageable memory it is one copy and one explicit wait, and no implicit one."""
    values = torch.ones(SOME)
    with gpu.measure() as cost:
        values.cuda()
    assert (1, 4 * SOME, 1) == (cost.h2d, cost.h2d_bytes, cost.stream_syncs)
    assert 0 == cost.implicit_syncs


def test_a_copy_that_does_not_wait(gpu: RealCuda) -> None:
    """From pageable memory it may block; from pinned memory it does not."""
    there = torch.empty(SOME, device="cuda")
    pageable, pinned = torch.ones(SOME), torch.ones(SOME).pin_memory()
    costs: list[Measurement] = []
    for source in (pageable, pinned):
        with gpu.measure() as cost:
            there.copy_(source, non_blocking=True)
        costs.append(cost)
    assert [1, 1] == [cost.h2d for cost in costs]
    assert [0, 0] == [cost.syncs for cost in costs]
    assert [1, 0] == [cost.implicit_syncs for cost in costs]


def test_copies_within_the_device(gpu: RealCuda) -> None:
    """A dense copy of one type is a copy, and no kernel."""
    values = torch.ones(SOME, device="cuda")
    with gpu.measure() as cost:
        values.clone()
    assert (1, 4 * SOME, 0) == (cost.d2d, cost.d2d_bytes, cost.launches)


def test_waits_by_kind(gpu: RealCuda) -> None:
    """One for a stream, one for an event, one for the device."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # has no annotations
    with gpu.measure() as cost:
        event.record()
        event.synchronize()
        torch.cuda.current_stream().synchronize()
        torch.cuda.synchronize()
    assert (1, 1, 1) == (cost.event_syncs, cost.stream_syncs, cost.device_syncs)


def test_backward_counts_at_the_line_that_called_it(gpu: RealCuda) -> None:
    """Autograd works in threads of its own; every allocation there is of the line that waits for it."""
    values = torch.ones(SOME, device="cuda", requires_grad=True)
    total = (values * values).sum()
    with gpu.measure() as cost:
        total.backward()  # type: ignore[no-untyped-call]  # has no annotations
    places = {(site.file, site.function) for site in cost.sites}
    assert {(__file__, "test_backward_counts_at_the_line_that_called_it")} == places


def test_counting_again_counts_the_same(gpu: RealCuda) -> None:
    """Two runs of the same code on the same device, waits that a library hides included."""
    values = torch.arange(SOME, device="cuda").view(-1, 2)
    costs = []
    for _ in range(2):
        with gpu.measure() as cost:
            torch.unique(values, dim=0)
        costs.append(cost)
    assert repr(costs[0]) == repr(costs[1])
    assert costs[0].syncs > 0


def test_it_says_what_it_counts_on(gpu: RealCuda) -> None:
    """The profile is that of the device, and the environment names it."""
    assert (torch.cuda.get_device_name(0), torch.version.cuda) == (environment().gpu, environment().cuda)
    assert torch.cuda.get_device_capability(0) == gpu.profile.capability
