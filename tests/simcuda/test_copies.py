"""Copies between host and devices: bytes, waits, and what goes through temporaries."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """Two simulated devices, each with a segment of memory for small blocks."""
    with simcuda.device(2) as simulated:
        for device in ("cuda:0", "cuda:1"):
            torch.empty(1, device=device)
        yield simulated


def test_an_asynchronous_copy_to_the_host_lands_in_pinned_memory(gpu: SimulatedCuda) -> None:
    """``to('cpu', non_blocking=True)`` pins what it makes: nothing blocks where such memory is cached."""
    x = torch.ones(10, device="cuda")
    with gpu.measure() as first:
        host = x.to("cpu", non_blocking=True)
    assert host.is_pinned()
    del host
    with gpu.measure() as cost:
        x.to("cpu", non_blocking=True)
    assert (1, 40, 0, 0) == (cost.d2h, cost.d2h_bytes, cost.syncs, cost.implicit_syncs)
    # One cudaHostAlloc.
    assert (0, 1) == (first.syncs, first.implicit_syncs)


def test_saved_tensors_come_back_to_their_device(gpu: SimulatedCuda, tmp_path: Path) -> None:
    """``torch.save`` copies each tensor to the host, and ``torch.load`` brings it back to where it was."""
    file = tmp_path / "state.pt"
    torch.save({"x": torch.ones(2, device="cuda:1")}, file)
    with gpu.measure() as cost:
        torch.save({"x": torch.ones(2, device="cuda:1")}, file)
    assert (1, 1) == (cost.d2h, cost.syncs)
    loaded = torch.load(file)["x"]
    assert (torch.device("cuda", 1), [1.0, 1.0]) == (loaded.device, loaded.tolist())
    assert torch.device("cpu") == torch.load(file, map_location="cpu")["x"].device


def test_pickling_copies_to_the_host(gpu: SimulatedCuda) -> None:
    """``pickle`` reads a tensor as ``torch.save`` does, and brings it back to its device."""
    x = torch.ones(2, device="cuda:1")
    with gpu.measure() as cost:
        data = pickle.dumps(x)
    # Two floats of 4 bytes.
    assert (1, 8, 1) == (cost.d2h, cost.d2h_bytes, cost.syncs)
    loaded = pickle.loads(data)  # noqa: S301 - made above
    assert (torch.device("cuda", 1), [1.0, 1.0]) == (loaded.device, loaded.tolist())


@pytest.mark.parametrize(
    "write",
    [
        lambda host, value: host.fill_(value),
        lambda host, value: host.index_fill_(0, torch.arange(3), value),
        lambda host, value: host.index_put_((torch.arange(3),), value),
    ],
)
def test_a_device_value_is_read_for_a_host_tensor(
    gpu: SimulatedCuda, write: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> None:
    """A host tensor takes a single value from a device by one copy that the host waits for."""
    host, value = torch.zeros(3), torch.tensor(2.0, device="cuda")
    with gpu.measure() as cost:
        write(host, value)
    assert ("cpu", [2.0, 2.0, 2.0]) == (host.device.type, host.tolist())
    # One float of 4 bytes; nothing runs on the device.
    assert (1, 4, 1, 0) == (cost.d2h, cost.d2h_bytes, cost.syncs, cost.launches)


@pytest.mark.usefixtures("gpu")
def test_pinned_copies_keep_their_layout() -> None:
    """A transposed tensor is still transposed once it is pinned."""
    assert (1, 3) == torch.ones(2, 3).t().pin_memory().stride()
