"""Tensors on the device whose values come from the host, so that they are the same on every device.

And the model that most workloads train.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import torch
from torch import nn

Steps = Generator[None, None, Any]
"""Builds a workload up to its ``yield``; what follows is one step of it."""

Workload = Callable[[torch.Generator], Steps]


def uniform(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Floats from 0 to 1."""
    return torch.rand(shape, generator=generator).to("cuda")


def integers(generator: torch.Generator, below: int, *shape: int) -> torch.Tensor:
    """Integers from 0, below a limit."""
    return torch.randint(below, shape, generator=generator).to("cuda")


def flags(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Booleans, a half of them true."""
    return uniform(generator, *shape) < 0.5


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers of the given widths with activations between them, on the device."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to("cuda")
