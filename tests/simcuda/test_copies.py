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


@pytest.mark.parametrize("pinned", [False, True])
def test_a_blocking_copy_to_the_device_is_one_wait(gpu: SimulatedCuda, pinned: bool) -> None:
    """A blocking copy waits for the stream once, from pinned memory too."""
    host = torch.ones(10)
    source = host.pin_memory() if pinned else host
    with gpu.measure() as cost:
        source.to("cuda")
    assert (1, 40, 1, 0) == (cost.h2d, cost.h2d_bytes, cost.stream_syncs, cost.implicit_syncs)


@pytest.mark.parametrize(("pinned", "implicit"), [(False, 1), (True, 0)])
def test_an_asynchronous_copy_may_wait_for_pageable_memory(
    gpu: SimulatedCuda, pinned: bool, implicit: int
) -> None:
    """An asynchronous copy makes no explicit wait; from pageable memory the host may block all the same."""
    host = torch.ones(10)
    source = host.pin_memory() if pinned else host
    with gpu.measure() as cost:
        source.to("cuda", non_blocking=True)
    assert pinned == source.is_pinned()
    assert (0, implicit) == (cost.syncs, cost.implicit_syncs)


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


def test_types_are_converted_on_the_host_for_a_blocking_copy(gpu: SimulatedCuda) -> None:
    """A blocking copy to the device converts first, and moves the bytes of the new type."""
    host = torch.ones(10, dtype=torch.float64)
    with gpu.measure() as cost:
        host.to("cuda", torch.float32)
    # 10 elements of 4 bytes; only the result is allocated.
    assert (40, 0, 1, 40) == (cost.h2d_bytes, cost.launches, cost.allocations, cost.peak_bytes)


def test_types_are_converted_on_the_device_for_an_asynchronous_copy(gpu: SimulatedCuda) -> None:
    """An asynchronous copy moves the old type into a temporary and converts there by one kernel."""
    host = torch.ones(10, dtype=torch.float64).pin_memory()
    with gpu.measure() as cost:
        host.to("cuda", torch.float32, non_blocking=True)
    # 80 bytes arrive beside the result of 40.
    assert (80, 1, 2, 120) == (cost.h2d_bytes, cost.launches, cost.allocations, cost.peak_bytes)


def test_scattered_memory_is_gathered_before_it_moves(gpu: SimulatedCuda) -> None:
    """A strided view is copied to the host through a contiguous temporary."""
    x = torch.ones(10, 2, device="cuda")[:, 0]
    with gpu.measure() as cost:
        x.cpu()
    # 10 elements of 4 bytes are gathered by one kernel, then moved.
    assert (1, 40, 40, 1) == (cost.launches, cost.peak_bytes, cost.d2h_bytes, cost.syncs)


def test_a_transposed_matrix_moves_as_it_is(gpu: SimulatedCuda) -> None:
    """Dense memory in another order of dimensions is one run of bytes: no temporary, no kernel."""
    x = torch.ones(3, 4, device="cuda").t()
    with gpu.measure() as cost:
        x.cpu()
    assert (0, 0, 48) == (cost.launches, cost.allocations, cost.d2h_bytes)


def test_copies_between_devices_do_not_wait(gpu: SimulatedCuda) -> None:
    """A copy to another device is one p2p copy and no wait of the host."""
    x = torch.ones(10, device="cuda:0")
    with gpu.measure() as cost:
        y = x.to("cuda:1")
    assert torch.device("cuda", 1) == y.device
    assert (1, 40, 0, 0) == (cost.p2p, cost.p2p_bytes, cost.syncs, cost.launches)


def test_copies_within_a_device(gpu: SimulatedCuda) -> None:
    """Contiguous memory of one type is copied as bytes, anything else by a kernel."""
    x = torch.ones(3, 4, device="cuda")
    with gpu.measure() as cost:
        x.clone()
        torch.empty_like(x).copy_(x)
        x.t().contiguous()
        x.to(torch.float16)
    # Two copies of 48 bytes; a transposition and a conversion are a kernel each.
    assert (2, 96, 2) == (cost.d2d, cost.d2d_bytes, cost.launches)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_nothing_is_copied_of_an_empty_tensor(gpu: SimulatedCuda, shape: tuple[int, ...]) -> None:
    """A tensor without elements needs no block, no copy and no wait."""
    with gpu.measure() as cost:
        torch.empty(shape).to("cuda").cpu()
    assert (0, 0, 0, 0) == (cost.allocations, cost.h2d, cost.d2h, cost.syncs)


def test_python_data_is_made_on_the_host_first(gpu: SimulatedCuda) -> None:
    """``torch.tensor`` of numbers is one blocking copy; 0-d device tensors among them are read one by one."""
    x = torch.ones(2, device="cuda")
    with gpu.measure() as cost:
        torch.tensor([1.0, 2.0], device="cuda")
    assert (1, 1) == (cost.h2d, cost.syncs)
    with gpu.measure() as cost:
        torch.tensor([x[0], x[1]], device="cuda")
    # Two reads and one copy.
    assert (2, 1, 3) == (cost.d2h, cost.h2d, cost.syncs)


def test_numpy_refuses_device_memory(gpu: SimulatedCuda) -> None:
    """Only host tensors become arrays; ``force`` copies first."""
    x = torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with gpu.measure() as cost:
        assert [1.0, 1.0] == x.numpy(force=True).tolist()
    assert 1 == cost.syncs


def test_a_list_of_values_is_one_read(gpu: SimulatedCuda) -> None:
    """``tolist`` copies the whole tensor once."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        assert [1.0, 1.0, 1.0] == x.tolist()
    assert (1, 12, 1) == (cost.d2h, cost.d2h_bytes, cost.syncs)


@pytest.mark.parametrize(
    ("shape", "reads"), [((), 8), ((4,), 14), ((4, 4), 41), ((1000,), 2005), ((2000,), 19)]
)
def test_printing_reads_values_one_by_one(gpu: SimulatedCuda, shape: tuple[int, ...], reads: int) -> None:
    """``str`` of a device tensor waits as often as PyTorch's formatter reads."""
    # Counted by others: 7, 13, 40, 2004 and 18 for floats, without the wait of one selection by mask.
    torch.manual_seed(0)  # values that differ by a factor of 1000 are printed, and read, in another way
    x = torch.rand(shape, device="cuda")
    with gpu.measure() as cost:
        assert "device='cuda:0'" in str(x)
    assert reads == cost.syncs


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


def test_the_data_loader_pins_memory(gpu: SimulatedCuda) -> None:
    """Batches of a loader with ``pin_memory`` are pinned, so that they can be copied without blocking."""
    batches = list(torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True))  # type: ignore[arg-type]  # a tensor is a sequence
    with gpu.measure() as cost:
        for batch in batches:
            batch.to("cuda", non_blocking=True)
    assert (2, 0) == (cost.h2d, cost.implicit_syncs)


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
