"""Data on its way to the device and between streams."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset

from simcuda.recording.case import Work
from simcuda.recording.workloads.tensors import uniform


def pinned_loading(generator: torch.Generator) -> Work:
    """Batches from a loader that pins memory, copied without waiting."""
    dataset = TensorDataset(torch.rand(12, 5, generator=generator), torch.arange(12))
    loader = DataLoader(dataset, batch_size=4, pin_memory=True)

    def load() -> torch.Tensor:
        total = torch.zeros((), device="cuda")
        for inputs, labels in loader:
            total += inputs.to("cuda", non_blocking=True).sum() + labels.to("cuda", non_blocking=True).sum()
        return total

    return load


def copies_of_every_kind(generator: torch.Generator) -> Work:
    """Pageable and pinned memory, both directions, blocking and not, other types and strides."""
    pageable = torch.rand(64, 16, generator=generator)
    pinned, remote = pageable.pin_memory(), uniform(generator, 64, 16)

    def copy() -> None:
        for host in (pageable, pinned):
            for lazily in (False, True):
                host.to("cuda", non_blocking=lazily)
                host.copy_(remote, non_blocking=lazily)
        pageable.to("cuda", torch.float16)
        remote.t().cpu()
        remote[:, ::2].to("cpu")
        torch.tensor([1.0, 2.0], device="cuda")
        torch.cuda.synchronize()

    return copy


def prefetch_on_a_side_stream(generator: torch.Generator) -> Work:
    """Copy the next batch on a stream of its own while the present one is used, ordered by events."""
    batches = [torch.rand(32, 8, generator=generator).pin_memory() for _ in range(3)]
    weight = uniform(generator, 8, 8)
    side = torch.cuda.Stream()

    def fetch(batch: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
        with torch.cuda.stream(side):
            moved = batch.to("cuda", non_blocking=True)
            return moved, side.record_event()

    def run() -> torch.Tensor:
        total = torch.zeros(32, 8, device="cuda")
        for batch in batches:
            moved, ready = fetch(batch)
            torch.cuda.current_stream().wait_event(ready)
            moved.record_stream(torch.cuda.current_stream())
            total += moved @ weight
        side.wait_stream(torch.cuda.current_stream())
        return total

    return run


def timed_by_events(generator: torch.Generator) -> Work:
    """Time a product by two events, waiting for the second."""
    matrix = uniform(generator, 32, 32)

    def run() -> object:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        matrix @ matrix
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    return run


WORKLOADS = (pinned_loading, copies_of_every_kind, prefetch_on_a_side_stream, timed_by_events)
