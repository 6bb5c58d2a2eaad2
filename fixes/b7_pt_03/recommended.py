"""The gradient statistics as the ticket proposes them: each gradient counted, and each count read at once."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


def collect_seed_gradients(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    """Count what is wrong with the gradients of ``parameters``; the ratio of zeros is not among it.

    Returns:
        NaN count, Inf count and element count: float64 of shape ``(3,)``, on the host.

    Raises:
        RuntimeError: A gradient is not contiguous.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    nans, infs, elements = 0.0, 0.0, 0
    for gradient in gradients:
        values = gradient.view(-1)
        nans += torch.isnan(values).sum().item()
        infs += torch.isinf(values).sum().item()
        elements += values.numel()
    return torch.tensor([nans, infs, elements], dtype=torch.float64)
