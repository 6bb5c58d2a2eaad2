"""Threads: they take part in the simulation, each with a current device and streams of its own."""

from __future__ import annotations

import _thread
import contextlib
import gc
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.device.dispatch_key import current_frames

DEVICES = 2


def read_one() -> float:
    """Make a tensor on the device and read it: one launch and one wait."""
    return torch.ones((), device="cuda").item()


class Worker(threading.Thread):
    """A thread with a ``run`` of its own."""

    def run(self) -> None:
        """Work."""
        read_one()


def start(thread: threading.Thread) -> None:
    """Let a thread run to its end."""
    thread.start()
    thread.join()


def run_low_level() -> None:
    """A thread without an object."""
    done = threading.Event()

    def work() -> None:
        read_one()
        done.set()

    _thread.start_new_thread(work, ())
    assert done.wait(10)


def run_executor() -> None:
    """A pool of threads."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(read_one).result()


WAYS: dict[str, Callable[[], None]] = {
    "a thread": lambda: start(threading.Thread(target=read_one)),
    "a timer": lambda: start(threading.Timer(0, read_one)),
    "a class of the user": lambda: start(Worker()),
    "without an object": run_low_level,
    "a pool": run_executor,
}


@pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)
def test_what_a_thread_does_is_counted_once(gpu: SimulatedCuda, run: Callable[[], None]) -> None:
    """Work on the device costs the same in any kind of thread."""
    with gpu.measure() as cost:
        run()
    assert (1, 1) == (cost.launches, cost.syncs)


def test_an_executor_that_was_there_before_takes_part() -> None:
    """What an old executor is given to do during a simulation is counted, and afterwards it is as before."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        for _ in range(2):
            with simcuda.device() as gpu, gpu.measure() as cost:
                pool.submit(read_one).result()
            assert (1, 1) == (cost.launches, cost.syncs)
        assert torch.device("cpu") == pool.submit(torch.ones, 1).result().device


def test_a_thread_that_outlives_its_simulation_goes_on_without_it() -> None:
    """Operations of such a thread are not charged to the simulation that has ended."""
    go, made = threading.Event(), []

    def work() -> None:
        assert go.wait(10)
        made.append(torch.ones(2) * 2)
        with contextlib.suppress(AssertionError, RuntimeError):
            made.append(torch.ones(2, device="cuda"))

    with simcuda.device() as ended:
        thread = threading.Thread(target=work)
        thread.start()
    go.set()
    thread.join()
    assert ([2.0, 2.0], 0) == (made[0].tolist(), ended.live_bytes())


@pytest.mark.usefixtures("gpu")
def test_each_thread_has_a_current_device_and_stream() -> None:
    """A new thread starts on device 0 and its default stream, and changes nothing for others."""
    seen: list[Any] = []

    def work() -> None:
        seen.extend([torch.cuda.current_device(), torch.cuda.current_stream()])
        torch.cuda.set_device(0)
        make: Any = torch.cuda.Stream
        torch.cuda.set_stream(make())

    make: Any = torch.cuda.Stream
    side = make(device=1)
    with torch.cuda.stream(side):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert (1, side) == (torch.cuda.current_device(), torch.cuda.current_stream())
    assert [0, torch.cuda.default_stream(0)] == seen


def test_threads_that_work_at_once_are_all_counted(gpu: SimulatedCuda) -> None:
    """Counts and memory come out right though threads take turns at any moment."""
    workers, rounds = 4, 50

    def work() -> None:
        for _ in range(rounds):
            read_one()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with gpu.measure() as cost:
            threads = [threading.Thread(target=work) for _ in range(workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    total = workers * rounds
    assert (total, total, total, total) == (cost.launches, cost.syncs, cost.d2h, cost.allocations)
    assert (0, 0) == (cost.retained_bytes, gpu.live_bytes())


def test_no_garbage_is_collected_while_threads_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 holds a lock then that the end of a thread's own values waits for."""
    monkeypatch.setattr(sys, "_current_frames", lambda: {int(gc.isenabled()): None})
    assert {0: None} == current_frames()
    assert gc.isenabled()
