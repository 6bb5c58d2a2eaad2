"""The gradient statistics in one tensor: counted gradient by gradient, read once by whoever needs them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


def collect_seed_gradients(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    """Count what is wrong with the gradients of ``parameters``, without waiting for the answer.

    Returns:
        NaN count, Inf count, ratio of zeros and element count: float64 of shape ``(4,)``, on the device of
        the first gradient, or on the host where there is none.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(4, dtype=torch.float64)
    counts: dict[torch.device, torch.Tensor] = {}
    for gradient in gradients:
        if gradient.device not in counts:
            counts[gradient.device] = torch.zeros(4, dtype=torch.float64, device=gradient.device)
        _count(gradient, counts[gradient.device])
    statistics = counts.pop(gradients[0].device)
    for others in counts.values():
        statistics += others.to(statistics.device)
    elements = sum(gradient.numel() for gradient in gradients)
    statistics[2].div_(max(elements, 1))
    statistics[3].add_(elements)
    return statistics


def _count(gradient: torch.Tensor, counts: torch.Tensor) -> None:
    """Add the NaN, Inf and zero counts of ``gradient`` to ``counts``, with one mask alive at a time."""
    counts[0].add_(torch.isnan(gradient).sum())
    if gradient.is_complex():
        counts[1].add_(torch.isinf(gradient).sum())
    else:
        # torch.isinf would first copy the absolute values: 5 bytes an element for float32 where these take 1.
        counts[1].add_(torch.isposinf(gradient).sum())
        counts[1].add_(torch.isneginf(gradient).sum())
    counts[2].add_((gradient == 0).sum())
