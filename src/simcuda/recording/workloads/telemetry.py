"""Data on its way to the device and between streams, and tensors that the host looks at.

Checks, losses and metrics are read one by one and together.
"""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset

from simcuda.recording.workloads.tensors import Steps, Workload, flags, integers, perceptron, uniform


def check_of_every_parameter(generator: torch.Generator) -> Steps:
    """NaN and infinity in each gradient, read one by one."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()
    yield
    bad = []
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        if gradient is not None and (torch.isnan(gradient).any() or torch.isinf(gradient).any()):
            bad.append(name)
    return bad


def check_of_all_parameters(generator: torch.Generator) -> Steps:
    """The same, read once."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()
    yield
    norms = torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None])
    return bool(torch.stack(norms).isfinite().all())


def values_read_one_by_one(generator: torch.Generator) -> Steps:
    """Twelve losses, an ``item`` each."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    yield
    return [loss.item() for loss in losses]


def values_read_together(generator: torch.Generator) -> Steps:
    """Twelve losses in one copy."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    yield
    return torch.stack(losses).tolist()


def metrics_accumulated(generator: torch.Generator) -> Steps:
    """Accuracy and a confusion matrix over three batches, read at the end."""
    batches = [(uniform(generator, 20, 5), integers(generator, 5, 20)) for _ in range(3)]
    yield
    right = torch.zeros((), device="cuda")
    confusion = torch.zeros(5, 5, dtype=torch.int64, device="cuda")
    for scores, labels in batches:
        predicted = scores.argmax(-1)
        right += (predicted == labels).sum()
        confusion += torch.bincount(labels * 5 + predicted, minlength=25).view(5, 5)
    return (right / 60).item(), confusion.tolist()


def padding_left_out(generator: torch.Generator) -> Steps:
    """Rows chosen by a mask, written back by it, and counted by class."""
    values, mask, classes = uniform(generator, 40, 3), flags(generator, 40), integers(generator, 4, 40)
    yield
    kept = values[mask]
    result = torch.zeros_like(values)
    result[mask] = kept * 2
    result[~mask] = -1.0
    counts = torch.nn.functional.one_hot(classes[mask], 4).sum(0)
    return result.sum() + counts.max() + torch.where(mask)[0].sum()


def pinned_loading(generator: torch.Generator) -> Steps:
    """Batches from a loader that pins memory, copied without waiting."""
    dataset = TensorDataset(torch.rand(12, 5, generator=generator), torch.arange(12))
    loader = DataLoader(dataset, batch_size=4, pin_memory=True)
    yield
    total = torch.zeros((), device="cuda")
    for inputs, labels in loader:
        total += inputs.to("cuda", non_blocking=True).sum() + labels.to("cuda", non_blocking=True).sum()
    return total


def copies_of_every_kind(generator: torch.Generator) -> Steps:
    """Pageable and pinned memory, both directions, blocking and not, other types and strides."""
    pageable = torch.rand(64, 16, generator=generator)
    pinned, remote = pageable.pin_memory(), uniform(generator, 64, 16)
    yield
    for host in (pageable, pinned):
        for lazily in (False, True):
            host.to("cuda", non_blocking=lazily)
            host.copy_(remote, non_blocking=lazily)
    pageable.to("cuda", torch.float16)
    remote.t().cpu()
    remote[:, ::2].to("cpu")
    torch.tensor([1.0, 2.0], device="cuda")
    torch.cuda.synchronize()


def prefetch_on_a_side_stream(generator: torch.Generator) -> Steps:
    """Copy the next batch on a stream of its own while the present one is used, ordered by events."""
    batches = [torch.rand(32, 8, generator=generator).pin_memory() for _ in range(3)]
    weight = uniform(generator, 8, 8)
    side = torch.cuda.Stream()
    yield
    total = torch.zeros(32, 8, device="cuda")
    for batch in batches:
        with torch.cuda.stream(side):
            moved = batch.to("cuda", non_blocking=True)
            ready = side.record_event()
        torch.cuda.current_stream().wait_event(ready)
        moved.record_stream(torch.cuda.current_stream())
        total += moved @ weight
    side.wait_stream(torch.cuda.current_stream())
    return total


def timed_by_events(generator: torch.Generator) -> Steps:
    """Time a product by two events, waiting for the second."""
    matrix = uniform(generator, 32, 32)
    yield
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    matrix @ matrix
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


WORKLOADS: dict[Workload, str] = {
    check_of_every_parameter: "01386a1c",
    check_of_all_parameters: "9a488e21",
    values_read_one_by_one: "2f0ac97b",
    values_read_together: "27132dbf",
    metrics_accumulated: "364938e1",
    padding_left_out: "40d81d71",
    pinned_loading: "2736b2cc",
    copies_of_every_kind: "0d2bb1ea",
    prefetch_on_a_side_stream: "75dabd35",
    timed_by_events: "2dafc02f",
}
"""Each with its digest."""
