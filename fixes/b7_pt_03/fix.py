"""The gradient statistics in one tensor: counted piece by piece, read once by whoever needs them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

# Summing a mask on a GPU first widens it to 8 bytes an element. A piece keeps that at 2 MiB and still fills
# the device.
PIECE = 1 << 18


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
    """Add the NaN, Inf and zero counts of ``gradient`` to ``counts``, which lives on the same device."""
    for values in _pieces(gradient):
        counts[0].add_(torch.isnan(values).sum())
        counts[1].add_(torch.isinf(values).sum())
        counts[2].add_((values == 0).sum())


def _pieces(values: torch.Tensor) -> list[torch.Tensor]:
    """Views of at most PIECE elements that make up ``values``; nothing is copied, whatever the layout."""
    if values.numel() <= PIECE:
        return [values]
    longest = max(values.shape)
    rows = max(PIECE * longest // values.numel(), 1)
    parts = torch.split(values, rows, values.shape.index(longest))
    return [piece for part in parts for piece in _pieces(part)]
