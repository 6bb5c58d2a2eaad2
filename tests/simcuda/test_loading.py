"""Loading data for simulated devices: pinned memory, worker processes and streams of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device."""
    with simcuda.device() as simulated:
        torch.empty(1, device="cuda")
        yield simulated


class Numbers(Dataset[dict[str, torch.Tensor]]):
    """Eight items, each a tensor on the host and a number."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.full((2,), float(index)), "y": index}


class OnDevice(Numbers):
    """Items that a worker tries to make on the device."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.full((2,), float(index), device="cuda"), "y": index}


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_pinned(gpu: SimulatedCuda, workers: int) -> None:
    """Batches from the process itself and from workers are pinned, so that copying them never waits.

    Without workers the process itself asks for pinned memory in the first epoch, which the next one reuses.
    """
    loader = DataLoader(Numbers(), batch_size=4, pin_memory=True, num_workers=workers)
    for blocks in (0 if workers else 4, 0):
        with gpu.measure() as cost:
            batches = [{k: v.to("cuda", non_blocking=True) for k, v in batch.items()} for batch in loader]
        # Two batches of two tensors, of which the second is pinned while the first is in use.
        assert (4, blocks, 0) == (cost.h2d, cost.implicit_syncs, cost.syncs)
    assert list(range(8)) == [y for batch in batches for y in batch["y"].tolist()]


def test_batches_that_are_not_pinned_may_block(gpu: SimulatedCuda) -> None:
    """An asynchronous copy from pageable memory may block the host, once a tensor."""
    with gpu.measure() as cost:
        for batch in DataLoader(Numbers(), batch_size=4):
            batch["x"].to("cuda", non_blocking=True)
    assert (2, 2) == (cost.h2d, cost.implicit_syncs)


def test_workers_may_stay(gpu: SimulatedCuda) -> None:
    """Workers that outlive an epoch, and the thread that pins for them, serve the next one too."""
    loader = DataLoader(Numbers(), batch_size=4, pin_memory=True, num_workers=1, persistent_workers=True)
    pinned = [batch["x"].is_pinned() for _ in range(2) for batch in loader]
    with gpu.measure() as cost:
        torch.ones(1, device="cuda").item()
    assert ([True] * 4, 1) == (pinned, cost.syncs)


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_worker_cannot_use_the_device() -> None:
    """A worker that was forked cannot make tensors on the device, as on CUDA."""
    with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
        list(DataLoader(OnDevice(), batch_size=4, num_workers=1))


def in_child(work: Callable[[], object]) -> str:
    """What comes of some work in a forked process: the result or the error, as text."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            result = str(work())
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(write, result.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as text:
        return text.read()


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_the_host_alone() -> None:
    """There, whatever touches the device fails with CUDA's error, and the host works."""
    x = torch.ones(3, device="cuda")
    works: list[Callable[[], object]] = [
        lambda: torch.zeros(1, device="cuda"),
        lambda: torch.zeros(1).cuda(),
        lambda: x + 1,
        x.tolist,
    ]
    for work in works:
        assert in_child(work).startswith("RuntimeError: Cannot re-initialize CUDA in forked subprocess")
    assert "6.0" == in_child(lambda: torch.full((3,), 2.0).sum().item())
    assert 3.0 == x.sum().item()


def test_a_prefetcher_overlaps_copies(gpu: SimulatedCuda) -> None:
    """The usual prefetcher, which copies on a stream of its own, has no hazards and waits for nothing."""
    make_stream: Any = torch.cuda.Stream
    side, total = make_stream(), torch.zeros((), device="cuda")

    def prefetched() -> Iterator[torch.Tensor]:
        for batch in DataLoader(Numbers(), batch_size=4, pin_memory=True):
            with torch.cuda.stream(side):
                x = batch["x"].to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            x.record_stream(torch.cuda.current_stream())
            yield x

    # The first epoch asks for pinned memory, and for memory of the stream.
    for _ in range(2):
        with gpu.measure() as cost:
            for x in prefetched():
                total += x.sum()
    assert (0, 0, 0) == (cost.syncs, cost.implicit_syncs, cost.hazards)
    # In each epoch twice 0 + ... + 7.
    assert 112.0 == total.item()
