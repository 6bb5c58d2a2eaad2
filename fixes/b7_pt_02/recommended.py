"""The NaN and Inf check as the ticket proposes it: everything concatenated, then asked twice."""

from __future__ import annotations

import torch
from torch import nn


def check_numerical_stability(model: nn.Module) -> dict[str, bool]:
    """Say whether the model holds NaN or Inf anywhere; which parameter it was is lost.

    Returns:
        One answer each under ``has_nan`` and ``has_inf``, over weights and gradients together.

    Raises:
        RuntimeError: A parameter is not contiguous, or the parameters live on several devices.
    """
    flattened = []
    for _, parameter in model.named_parameters():
        flattened.append(parameter.data.view(-1))
        if parameter.grad is not None:
            flattened.append(parameter.grad.view(-1))
    if not flattened:
        return {"has_nan": False, "has_inf": False}
    everything = torch.cat(flattened)
    return {
        "has_nan": bool(torch.isnan(everything).any().item()),
        "has_inf": bool(torch.isinf(everything).any().item()),
    }
