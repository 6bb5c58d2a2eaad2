"""Processes that a program spawns have the simulated devices too, and their counts are told apart."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing

import simcuda
from simcuda.ledger import COUNTED
from simcuda.torch_api.concurrency import MEMORY

SPAWNING = multiprocessing.get_context("spawn")


def read(index: int, times: int) -> None:
    """One allocation, and ``times`` sums that the host reads."""
    x = torch.ones(4, device=f"cuda:{index}")
    for _ in range(times):
        x.sum().item()


def spawn(target: Callable[..., Any], *args: Any) -> Any:
    """A spawned process that has ended."""
    process = SPAWNING.Process(target=target, args=args)
    process.start()
    process.join()
    return process


def read_in_a_child() -> None:
    """As ``read``, in a process of its own."""
    spawn(read, 0, 3)


def die() -> None:
    """End without a word."""
    read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_ranks_of_a_program_are_counted_and_told_apart() -> None:
    """What each process waits for is in the sum, by lines that name the process; this one's are its own."""
    processes: Any = torch.multiprocessing
    with simcuda.device(2) as gpu, gpu.measure() as cost:
        # Rank and times: ``spawn`` gives each process its rank.
        processes.spawn(read, args=(3,), nprocs=2)
        torch.ones(4, device="cuda").sum().item()
    # Three reads in each of two processes, and one here.
    assert 7 == cost.syncs == cost.d2h
    waits = {site.process: site.count for site in cost.sites if site.what == "stream_syncs"}
    assert 1 == waits.pop("")
    assert [3, 3] == list(waits.values())
    assert {"read"} == {site.function for site in cost.sites if site.process}
    assert all(f"in read, {process}" in cost.report() for process in waits)
    assert {Path(__file__).name} == {Path(site.file).name for site in cost.sites}
    # 16 bytes of x and 4 of a sum are live in one process at a time, or in all three at once.
    assert (20, 60) == cost.ranges["peak_bytes"]
    assert "syncs" not in cost.ranges


@pytest.mark.slow
def test_a_child_of_a_child_is_counted() -> None:
    """Its parent adds what it told to its own counts."""
    with simcuda.device() as gpu, gpu.measure() as cost:
        spawn(read_in_a_child)
    assert 3 == cost.syncs


def multiply() -> None:
    """A product, whose kernels and workspace cuBLAS chooses."""
    x = torch.ones(4, 4, device="cuda")
    x @ x


@pytest.mark.slow
def test_what_is_modelled_in_a_child_is_a_range_here() -> None:
    """The range is that of the same work in one process."""
    ranges = []
    for work in (multiply, lambda: spawn(multiply)):
        with simcuda.device() as gpu, gpu.measure() as cost:
            work()
        assert "aten.mm.default" in cost.approximate
        ranges.append((cost.launches, cost.ranges["launches"]))
    assert ranges[0] == ranges[1]
    # One kernel or more: which and how many, nobody knows.
    assert ranges[0][0] != ranges[0][1][1]


def lie() -> None:
    """Tell the parent of counts below 0, and end before anything else is told."""
    lies = {"counts": dict.fromkeys(COUNTED, -9), "sites": [], "unknown": [], "approximate": [], "slack": {}}
    for each in gc.get_objects():
        if isinstance(each, Connection) and each.writable:
            each.send_bytes(json.dumps(lies | dict.fromkeys(MEMORY, 0)).encode())
    os._exit(0)


def test_what_a_child_tells_makes_no_count_smaller() -> None:
    """Its code may write to the pipe itself; then nobody knows what it has counted."""
    with simcuda.device() as gpu, gpu.measure() as cost:
        read(0, 2)
        assert 0 == spawn(lie).exitcode
    assert (2, (2, None)) == (cost.syncs, cost.ranges["syncs"])


@pytest.mark.slow
def test_a_child_that_was_killed_is_named() -> None:
    """Nobody knows what it has counted: every metric can be more."""
    with simcuda.device() as gpu, gpu.measure() as cost:
        assert -signal.SIGKILL == spawn(die).exitcode
        before = len(list(Path("/dev/fd").iterdir()))
        assert -signal.SIGKILL == spawn(die).exitcode
        # The pipe of the first is closed before that of the second is open.
        assert before == len(list(Path("/dev/fd").iterdir()))
    assert (0, None) == cost.ranges["syncs"]
    assert 2 == sum("has not told" in each for each in cost.approximate)


def test_devices_are_no_longer_passed_on_after_the_simulation() -> None:
    """A process that is spawned later has no devices, as one that was spawned before."""
    with simcuda.device():
        pass
    assert 1 == spawn(read, 0, 1).exitcode


@pytest.mark.parametrize("uses_device", [True, False])
def test_a_forked_child_has_only_the_host(uses_device: bool) -> None:
    """As CUDA has it: it may compute on the host, and using a device is an error."""
    work = (lambda: read(0, 1)) if uses_device else (lambda: torch.ones(4).sum().item())
    with simcuda.device() as gpu, gpu.measure() as cost:
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
    assert (int(uses_device), 0, {}) == (process.exitcode, cost.syncs, cost.ranges)


def test_a_forked_child_that_goes_past_the_device_is_named() -> None:
    """What it reads there is not counted here; what it does on the host alone is no doubt."""
    key: Any = torch._C._parse_dispatch_key("Fake")

    def past() -> None:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, True)
        assert [1.0] == x.tolist()

    def on_host() -> None:
        torch.ones(4).tolist()

    unknown: list[tuple[str, ...]] = []
    with simcuda.device() as gpu:
        x = torch.ones(1, device="cuda")
        for work in (past, on_host):
            with gpu.measure() as cost:
                process = multiprocessing.get_context("fork").Process(target=work)
                process.start()
                process.join()
            assert 0 == process.exitcode
            unknown.append(cost.unknown)
    assert [("what a forked process did past the device",), ()] == unknown
