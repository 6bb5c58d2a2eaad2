"""The gradient statistics as the ticket found them: counted on one flat copy of all gradients."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


def collect_seed_gradients(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    """Count what is wrong with the gradients of ``parameters``, without waiting for the answer.

    Returns:
        NaN count, Inf count, ratio of zeros and element count: float64 of shape ``(4,)``, on the device of
        the gradients, or on the host where there is none.

    Raises:
        RuntimeError: A gradient is not contiguous, or the gradients live on several devices.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(4, dtype=torch.float64)
    flat = torch.cat([gradient.view(-1) for gradient in gradients])
    statistics = torch.zeros(4, dtype=torch.float64, device=flat.device)
    statistics[0].add_(torch.isnan(flat).sum())
    statistics[1].add_(torch.isinf(flat).sum())
    statistics[2].add_((flat == 0).sum())
    statistics[2].div_(max(flat.numel(), 1))
    statistics[3].add_(flat.numel())
    return statistics
