"""The NaN and Inf check as the ticket found it: every question is answered before the next one is asked."""

from __future__ import annotations

import torch
from torch import nn


def check_numerical_stability(model: nn.Module) -> dict[str, list[str]]:
    """Name the parameters that hold NaN or Inf, in their weights and in their gradients.

    Returns:
        Names in the model's order under ``nan_weights``, ``inf_weights``, ``nan_gradients`` and
        ``inf_gradients``.
    """
    report: dict[str, list[str]] = {
        "nan_weights": [],
        "inf_weights": [],
        "nan_gradients": [],
        "inf_gradients": [],
    }
    for name, parameter in model.named_parameters():
        if torch.isnan(parameter.data).any():
            report["nan_weights"].append(name)
        if torch.isinf(parameter.data).any():
            report["inf_weights"].append(name)
        if parameter.grad is not None:
            if torch.isnan(parameter.grad).any():
                report["nan_gradients"].append(name)
            if torch.isinf(parameter.grad).any():
                report["inf_gradients"].append(name)
    return report
