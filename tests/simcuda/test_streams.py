"""Streams and events: who waits for what, and accesses that nothing orders."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda
from simcuda.device import machine

DEVICES = 2

TENSORS = 6


def new_stream(**how: Any) -> Any:
    """A stream of the simulated ``torch.cuda``, whose annotations are incomplete."""
    make: Any = torch.cuda.Stream
    return make(**how)


def new_event(**how: Any) -> Any:
    """An event of the simulated ``torch.cuda``."""
    make: Any = torch.cuda.Event
    return make(**how)


def test_a_loop_that_polls_waits(gpu: SimulatedCuda) -> None:
    """Once, at its line, however it is written. To look once at pending work waits for nothing."""
    event, stream = new_event(), torch.cuda.current_stream()
    with gpu.measure() as cost:
        value = torch.ones(4, device="cuda")
        event.record()
        assert not event.query()
        while not event.query():
            pass
        assert event.query()
        value.add_(1)
        while True:
            if stream.query():
                break
    waits = {site.what: (site.line, site.count) for site in cost.sites if site.what.endswith("_syncs")}
    (first, once), (second, once_more) = waits["event_syncs"], waits["stream_syncs"]
    assert (1, 1, 2) == (once, once_more, cost.drains)
    # The second loop asks five lines below the first one.
    assert 5 == second - first


def test_a_loop_that_polls_an_event_behind_nothing_waits(gpu: SimulatedCuda) -> None:
    """As ``synchronize`` does: the device has yet to come to it. Nobody waits for an idle stream."""
    event, stream = new_event(), torch.cuda.current_stream()
    stream.synchronize()
    with gpu.measure() as cost:
        event.record()
        while not event.query():
            pass
        assert stream.query()
    assert (1, 1) == (cost.event_syncs, cost.syncs)


def test_a_loop_that_works_while_it_polls_waits_for_nothing(gpu: SimulatedCuda) -> None:
    """Each round launches something, and the device never idles."""
    event, value = new_event(), torch.ones(4, device="cuda")
    event.record()
    with gpu.measure() as cost:
        while not event.query():
            value.add_(1)
    assert (0, 1) == (cost.syncs, cost.launches)


@pytest.mark.usefixtures("gpu")
def test_streams_belong_to_a_device() -> None:
    """A stream makes its device and itself current for a block, and both are back afterwards."""
    stream = new_stream(device=1)
    with torch.cuda.stream(stream):
        assert stream == torch.cuda.current_stream(1)
        assert 1 == torch.cuda.current_device()
        assert torch.device("cuda", 1) == torch.zeros(1, device="cuda").device
    assert torch.cuda.default_stream(1) == torch.cuda.current_stream(1)
    assert 0 == torch.cuda.current_device()


@pytest.mark.usefixtures("gpu")
def test_streams_come_from_a_pool() -> None:
    """After 32 streams the first one is handed out again."""
    streams = [new_stream() for _ in range(33)]
    assert 32 == len(set(streams))
    assert streams[0] == streams[32]


# Given the stream that writes and an event after its writes: the host, or the stream of the copies, waits.
WAITS: list[tuple[Callable[[Any, Any], object], int]] = [
    (lambda _, __: None, TENSORS),
    (lambda _, __: torch.cuda.current_stream().synchronize(), TENSORS),
    (lambda _, __: torch.cuda.synchronize(), 0),
    (lambda side, _: side.synchronize(), 0),
    (lambda _, written: written.synchronize(), 0),
    (lambda side, _: torch.cuda.current_stream().wait_stream(side), 0),
    (lambda _, written: torch.cuda.current_stream().wait_event(written), 0),
]


@pytest.mark.parametrize(("wait", "hazards"), WAITS)
@pytest.mark.parametrize("pinned", [False, True])
def test_a_rollback_while_another_stream_writes(
    gpu: SimulatedCuda, wait: Callable[[Any, Any], object], hazards: int, pinned: bool
) -> None:
    """Copies into tensors that another stream writes are a hazard each, unless something orders the two."""
    targets = [torch.zeros(4, device="cuda") for _ in range(TENSORS)]
    good = [torch.ones(4) for _ in targets]
    good = [tensor.pin_memory() for tensor in good] if pinned else good
    side = new_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for tensor in targets:
            tensor.add_(1)
        written = side.record_event()
    with gpu.measure() as cost:
        copies = [tensor.to("cuda", non_blocking=True) for tensor in good]
        wait(side, written)
        for tensor, copy in zip(targets, copies, strict=True):
            tensor.copy_(copy)
    assert hazards == cost.hazards
    assert hazards == sum(site.count for site in cost.sites if site.what == "hazards")
    assert all([1.0] * 4 == tensor.tolist() for tensor in targets)


BESIDE = [
    # Rows of 4 numbers each, then with one in common.
    ("x[:4].add_(1)", "x[4:].add_(1)", 0),
    ("x[:4].add_(1)", "x[3:].add_(1)", 1),
    ("x[:4].add_(1)", "x[4:].sum()", 0),
    ("x[:4].add_(1)", "x.sum()", 1),
    ("x.add_(1)", "x[4:].sum()", 1),
    ("x[:4].sum()", "x[:4].add_(1)", 1),
    ("x[:4].sum()", "x[:4].sum()", 0),
    # Columns lie between each other, and so do blocks of them.
    ("grid[:, 0].add_(1)", "grid[:, 1].add_(1)", 0),
    ("grid[:, :2].add_(1)", "grid[:, 2:].add_(1)", 0),
    ("grid[:, :3].add_(1)", "grid[:, 2:].add_(1)", 1),
    ("grid[:, 0].add_(1)", "grid[1].add_(1)", 1),
    ("grid.view(2, 2, 4)[..., 0].add_(1)", "grid.view(2, 2, 4)[..., 1].add_(1)", 0),
    ("x[0::2].add_(1)", "x[1::2].add_(1)", 0),
    # Lists, given results and copies.
    ("torch._foreach_add_([x[:4]], 1)", "torch._foreach_add_([x[4:]], 1)", 0),
    ("torch._foreach_add_([x[:4]], 1)", "torch._foreach_add_([x[2:6]], 1)", 1),
    ("torch.add(grid[0], 1, out=x[:4])", "torch.add(grid[0], 1, out=x[4:])", 0),
    ("torch.add(grid[0], 1, out=x[:4])", "torch.add(grid[0], 1, out=x[1:5])", 1),
    ("x[:4].copy_(grid[0])", "x[4:].copy_(grid[0])", 0),
    ("x[:4].copy_(grid[0])", "x[2:6].copy_(grid[0])", 1),
]


@pytest.mark.parametrize(("code_beside", "code", "hazards"), BESIDE)
def test_streams_may_work_on_different_parts(
    gpu: SimulatedCuda, code_beside: str, code: str, hazards: int
) -> None:
    """Of one tensor: only bytes in common are a hazard, and a second time they are none more."""
    names = {"torch": torch, "x": torch.zeros(8, device="cuda"), "grid": torch.zeros(4, 4, device="cuda")}
    side = new_stream()
    side.wait_stream(torch.cuda.current_stream())
    with gpu.measure() as cost:
        with torch.cuda.stream(side):
            exec(code_beside, names)  # noqa: S102 - the code is above
        exec(code, names)  # noqa: S102 - as above
        torch.cuda.current_stream().wait_stream(side)
        exec(code, names)  # noqa: S102 - as above
    assert hazards == cost.hazards


@pytest.mark.parametrize(
    ("starts", "early", "hazards"),
    [
        ((0, 4, 8), 0, 0),
        # Each of 5 reads is of the slot that is being written.
        ((0, 4, 8), 1, 5),
        # The second slot begins in the first and the third in the second: 2 in each round of 3 writes.
        ((0, 2, 4), 0, 4),
    ],
)
def test_a_ring_of_slots_is_read_one_step_behind(
    gpu: SimulatedCuda, starts: tuple[int, ...], early: int, hazards: int
) -> None:
    """The host waits for the copy into one slot while the next is filled, in one pinned tensor."""
    ring, x = torch.zeros(12, pin_memory=True), torch.ones(4, device="cuda")
    slots = [ring[start : start + 4] for start in starts]
    copied = [new_event() for _ in slots]
    with gpu.measure() as cost:
        for step in range(6):
            slots[step % 3].copy_(x, non_blocking=True)
            copied[step % 3].record()
            if step:
                copied[(step - 1) % 3].synchronize()
                slots[(step - 1 + early) % 3].sum()
    assert (hazards, 5) == (cost.hazards, cost.event_syncs)


def test_reading_a_value_orders_the_host_after_the_stream(gpu: SimulatedCuda) -> None:
    """Work launched after the host has read a result on a stream comes after that stream's work."""
    x = torch.zeros(4, device="cuda")
    side = new_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + 1
        y[0].item()
    with gpu.measure() as cost:
        y.mul_(2)
    assert 0 == cost.hazards


@pytest.mark.parametrize("waits", [False, True])
def test_the_host_reads_what_is_still_being_copied(gpu: SimulatedCuda, waits: bool) -> None:
    """The result of an asynchronous copy is a hazard for a host that has not waited for it."""
    x = torch.ones(4, device="cuda")
    with gpu.measure() as cost:
        host = x.to("cpu", non_blocking=True)
        if waits:
            torch.cuda.current_stream().synchronize()
        host.tolist()
        host.sum()
    # The list and the sum, each with the line of the copy.
    assert (0 if waits else 2) == cost.hazards
    lines = {what: [site.line for site in cost.sites if site.what == what] for what in ("hazards", "raced")}
    if not waits:
        (copied,) = lines["raced"]
        assert [copied + 3, copied + 4] == lines["hazards"]


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("waits", [False, True])
def test_a_checkpoint_of_what_is_still_being_copied(
    gpu: SimulatedCuda, waits: bool, how: dict[str, bool]
) -> None:
    """Both formats of ``torch.save`` read pinned memory by C++, where the host has to have waited."""
    x = torch.ones(8, device="cuda")
    with gpu.measure() as cost:
        host = x.to("cpu", non_blocking=True)
        if waits:
            torch.cuda.synchronize()
        torch.save({"x": host}, io.BytesIO(), **how)
    assert int(not waits) == cost.hazards


@pytest.mark.parametrize("waits", [False, True])
def test_the_host_overwrites_what_is_still_being_copied(gpu: SimulatedCuda, waits: bool) -> None:
    """The source of an asynchronous copy must not change before the host has waited for it."""
    pinned = torch.ones(4).pin_memory()
    with gpu.measure() as cost:
        pinned.to("cuda", non_blocking=True)
        if waits:
            torch.cuda.synchronize()
        pinned.sum()
        pinned.copy_(torch.zeros(4))
    assert (0 if waits else 1) == cost.hazards


def test_a_backward_pass_comes_after_its_forward(gpu: SimulatedCuda) -> None:
    """The autograd engine orders a backward pass after the forward, though that ran on another stream."""
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    side = new_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = (leaf.exp() * 2).sum()
    with gpu.measure() as cost:
        torch.autograd.backward(loss)
    assert 0 == cost.hazards


def test_memory_freed_while_another_stream_uses_it(gpu: SimulatedCuda) -> None:
    """A block reused while another stream still reads it is a hazard, which ``record_stream`` prevents."""
    for recorded, hazards in ((False, 1), (True, 0)):
        torch.cuda.synchronize()
        x = torch.zeros(1000, device="cuda")
        side = new_stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x + 1
        if recorded:
            x.record_stream(side)
        with gpu.measure() as cost:
            del x
            torch.zeros(1000, device="cuda")
        assert hazards == cost.hazards
        del y


@pytest.mark.usefixtures("gpu")
def test_elapsed_time_needs_two_recorded_events() -> None:
    """Events without timing or not yet recorded have no time between them, and say so."""
    first, second = new_event(enable_timing=True), new_event(enable_timing=True)
    first.record()
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(second)
    second.record()
    with pytest.warns(UserWarning, match="mean nothing") as told:
        times = [first.elapsed_time(second) for _ in range(2)]
    assert 1 == len(told)
    assert min(times) >= 0
    with pytest.raises(ValueError, match="enable_timing"):
        first.elapsed_time(new_event())


def test_a_backward_pass_runs_on_the_streams_of_its_forward(gpu: SimulatedCuda) -> None:
    """Each part of a backward pass runs on the stream that was current when its forward part ran."""
    streams: dict[str, Any] = {}

    def watch(name: str, tensor: torch.Tensor) -> torch.Tensor:
        observe: Any = tensor.register_hook
        observe(lambda _: streams.update({name: torch.cuda.current_stream()}))
        return tensor

    leaf, main, side = (
        torch.ones(3, device="cuda", requires_grad=True),
        torch.cuda.current_stream(),
        new_stream(),
    )
    doubled = watch("before", leaf * 2)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = watch("beside", doubled.exp())
    main.wait_stream(side)
    loss = watch("after", result * 2).sum()
    with gpu.measure() as cost:
        torch.autograd.backward(loss)
        assert leaf.grad is not None
        leaf.grad.mul_(2)
    assert {"before": main, "beside": side, "after": main} == streams
    # Autograd orders its parts, and what follows on the stream that called it.
    assert (main, 0) == (torch.cuda.current_stream(), cost.hazards)


def test_a_long_run_does_not_remember_every_switch_of_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last switches are kept, by which a backward pass finds its streams."""
    monkeypatch.setattr(machine, "SWITCHES_KEPT", 10)
    current = machine.CurrentStreams(1)
    leaf = torch.ones(1, requires_grad=True)
    for stream in range(100):
        current.set_stream(0, stream)
        made = leaf * 2
    assert len(current._switches[0]) <= 10
    seen = []
    observe: Any = made.register_hook
    observe(lambda _: seen.append(current.stream_of_forward(0, 1)))
    torch.autograd.backward(made)
    assert [99] == seen


def test_a_backward_pass_on_another_stream_is_not_ordered_with_it(gpu: SimulatedCuda) -> None:
    """What a third stream does with the gradients needs an ordering of its own."""
    leaf, side = torch.ones(3, device="cuda", requires_grad=True), new_stream()
    torch.autograd.backward((leaf * 2).sum())
    assert leaf.grad is not None
    with gpu.measure() as cost, torch.cuda.stream(side):
        leaf.grad.mul_(2)
    assert 1 == cost.hazards


@pytest.mark.usefixtures("gpu")
def test_a_stream_within_a_backward_pass_stays_where_it_is_put() -> None:
    """Code that a hook runs on a stream of its own stays on that stream."""
    seen = []
    leaf, side = torch.ones(3, device="cuda", requires_grad=True), new_stream()

    def hook(gradient: torch.Tensor) -> None:
        with torch.cuda.stream(side):
            gradient.exp()
            seen.append(torch.cuda.current_stream())

    observe: Any = leaf.register_hook
    observe(hook)
    torch.autograd.backward((leaf * 2).sum())
    assert [side] == seen
