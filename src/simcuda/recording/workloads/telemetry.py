"""Looking at tensors from the host: checks, losses and metrics, read one by one and together."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch

from simcuda.recording.case import Work
from simcuda.recording.workloads.tensors import flags, integers, uniform
from simcuda.recording.workloads.training import perceptron


def check_of_every_parameter(generator: torch.Generator) -> Work:
    """NaN and infinity in each gradient, asked for one by one."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()

    def check() -> list[str]:
        bad = []
        for name, parameter in model.named_parameters():
            gradient = parameter.grad
            if gradient is not None and (torch.isnan(gradient).any() or torch.isinf(gradient).any()):
                bad.append(name)
        return bad

    return check


def check_of_all_parameters(generator: torch.Generator) -> Work:
    """The same question put once."""
    model = perceptron(8, 16, 16, 4)
    model(uniform(generator, 4, 8)).sum().backward()

    def check() -> bool:
        norms = torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None])
        return bool(torch.stack(norms).isfinite().all())

    return check


def values_read_one_by_one(generator: torch.Generator) -> Work:
    """Twelve losses, an ``item`` each."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    return lambda: [loss.item() for loss in losses]


def values_read_together(generator: torch.Generator) -> Work:
    """Twelve losses in one copy."""
    losses = [uniform(generator, 6).mean() for _ in range(12)]
    return lambda: torch.stack(losses).tolist()


def metrics_accumulated(generator: torch.Generator) -> Work:
    """Accuracy and a confusion matrix over three batches, read at the end."""
    batches = [(uniform(generator, 20, 5), integers(generator, 5, 20)) for _ in range(3)]

    def evaluate() -> tuple[float, list[list[int]]]:
        right = torch.zeros((), device="cuda")
        confusion = torch.zeros(5, 5, dtype=torch.int64, device="cuda")
        for scores, labels in batches:
            predicted = scores.argmax(-1)
            right += (predicted == labels).sum()
            confusion += torch.bincount(labels * 5 + predicted, minlength=25).view(5, 5)
        return (right / 60).item(), confusion.tolist()

    return evaluate


def padding_left_out(generator: torch.Generator) -> Work:
    """Rows chosen by a mask, written back by it, and counted by class."""
    values, mask, classes = uniform(generator, 40, 3), flags(generator, 40), integers(generator, 4, 40)

    def compact() -> torch.Tensor:
        kept = values[mask]
        result = torch.zeros_like(values)
        result[mask] = kept * 2
        result[~mask] = -1.0
        counts = torch.nn.functional.one_hot(classes[mask], 4).sum(0)
        return result.sum() + counts.max() + torch.where(mask)[0].sum()

    return compact


WORKLOADS = (
    check_of_every_parameter,
    check_of_all_parameters,
    values_read_one_by_one,
    values_read_together,
    metrics_accumulated,
    padding_left_out,
)
