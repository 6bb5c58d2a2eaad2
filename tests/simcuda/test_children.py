"""Processes that a program spawns have the simulated devices too; what they cost is unknown."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from simcuda.torch_api.concurrency import SPAWNED


@pytest.fixture(scope="module")
def _torch_is_loaded_once() -> Iterator[None]:
    """Let what a spawned process loads be loaded by one server, from which the others are forked."""
    server = forkserver.ForkServer()
    server.set_forkserver_preload(["torch", "simcuda", __name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forkserver, "connect_to_new_process", server.connect_to_new_process)
        server.ensure_running()
        yield
    server._stop()  # type: ignore[attr-defined]  # as multiprocessing's own tests do


def read(index: int, times: int) -> None:
    """One allocation, and ``times`` sums that the host reads."""
    x = torch.ones(4, device=f"cuda:{index}")
    for _ in range(times):
        x.sum().item()


def wait() -> None:
    """Only wait for the device."""
    torch.cuda.synchronize()


def add_on_host() -> None:
    """Ask for a device, and use none."""
    assert torch.cuda.is_available()
    assert 3.0 == torch.ones(3).sum().item()


def die() -> None:
    """Use the device and end without a word."""
    read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def read_until(path: str) -> None:
    """Use the device, say so by a file, and go on until the file is gone."""
    read(0, 1)
    Path(path).touch()
    while Path(path).exists():
        time.sleep(0.01)


def read_in_a_child() -> None:
    """As ``read``, in a process of its own."""
    assert 0 == start(read, 0, 3).exitcode


def start(target: Callable[..., Any], *args: Any) -> Any:
    """A process that has begun from nothing, and has ended."""
    process: Any = multiprocessing.get_context("forkserver").Process(target=target, args=args)
    process.start()
    process.join()
    return process


@pytest.mark.slow
@pytest.mark.usefixtures("_torch_is_loaded_once")
def test_a_child_that_uses_a_device_is_unknown() -> None:
    """It runs on devices of its own, said once for two of them; the counts are those of this process.

    So it is with children that are spawned, as tests/test_pytest_simcuda_session.py shows.
    """
    with simcuda.device(2) as gpu, gpu.measure() as cost:
        assert {0} == {start(read, index, 3).exitcode for index in range(2)}
        torch.ones(4, device="cuda").sum().item()
    # One read here; the three of each child are nowhere.
    assert 1 == cost.syncs == cost.d2h
    assert (SPAWNED,) == cost.unknown
    assert f"unknown, so their waits are not counted: {SPAWNED}" in cost.report()


@pytest.mark.slow
@pytest.mark.usefixtures("_torch_is_loaded_once")
@pytest.mark.parametrize(
    ("target", "exit_code", "unknown"),
    [
        (wait, 0, (SPAWNED,)),
        (add_on_host, 0, ()),
        (die, -signal.SIGKILL, (SPAWNED,)),
        (read_in_a_child, 0, (SPAWNED,)),
    ],
)
def test_which_children_are_unknown(
    target: Callable[[], None], exit_code: int, unknown: tuple[str, ...]
) -> None:
    """Those that waited, were killed or started others that use a device; not those of the host alone."""
    with simcuda.device() as gpu, gpu.measure() as cost:
        assert exit_code == start(target).exitcode
    assert unknown == cost.unknown


@pytest.mark.slow
@pytest.mark.usefixtures("_torch_is_loaded_once")
def test_blocks_are_unknown_in_which_a_child_used_a_device(tmp_path: Path) -> None:
    """A child that used one before, and waits or has ended, marks no later block, and leaves no file open."""
    marked = []
    path = tmp_path / "running"
    before = len(list(Path("/dev/fd").iterdir()))
    with simcuda.device() as gpu:
        process = multiprocessing.get_context("forkserver").Process(target=read_until, args=(str(path),))
        with gpu.measure() as cost:
            process.start()
            while not path.exists():
                time.sleep(0.01)
        marked.append(bool(cost.unknown))
        with gpu.measure() as cost:
            path.unlink()
            process.join()
        marked.append(bool(cost.unknown))
        process.close()
    del gpu
    assert before == len(list(Path("/dev/fd").iterdir()))
    assert [True, False] == marked


@pytest.mark.slow
@pytest.mark.usefixtures("_torch_is_loaded_once")
def test_devices_are_no_longer_passed_on_after_the_simulation() -> None:
    """A process that is spawned later has no devices, as one that was spawned before."""
    with simcuda.device():
        pass
    assert 1 == start(read, 0, 1).exitcode


@pytest.mark.parametrize("uses_device", [True, False])
def test_a_forked_child_has_only_the_host(uses_device: bool) -> None:
    """As CUDA has it: it may compute on the host, and using a device is an error."""
    work = (lambda: read(0, 1)) if uses_device else (lambda: torch.ones(4).sum().item())
    with simcuda.device() as gpu, gpu.measure() as cost:
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
    assert (int(uses_device), 0, {}) == (process.exitcode, cost.syncs, cost.ranges)
