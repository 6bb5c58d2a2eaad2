"""Tensors on the device whose values come from the host, so that they are the same on every device."""

from __future__ import annotations

import torch


def uniform(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Floats from 0 to 1."""
    return torch.rand(shape, generator=generator).to("cuda")


def integers(generator: torch.Generator, below: int, *shape: int) -> torch.Tensor:
    """Integers from 0, below a limit."""
    return torch.randint(below, shape, generator=generator).to("cuda")


def flags(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Booleans, a half of them true."""
    return uniform(generator, *shape) < 0.5
