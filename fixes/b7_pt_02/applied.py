"""The NaN and Inf check as the ticket was resolved: all questions first, one read of the stacked answers."""

from __future__ import annotations

import torch
from torch import nn


def check_numerical_stability(model: nn.Module) -> dict[str, list[str]]:
    """Name the parameters that hold NaN or Inf, in their weights and in their gradients.

    The resolution leaves open what stands for a gradient that is not there; a zero made on the device is
    the answer that does not wait.

    Returns:
        Names in the model's order under ``nan_weights``, ``inf_weights``, ``nan_gradients`` and
        ``inf_gradients``.

    Raises:
        RuntimeError: The parameters live on several devices.
    """
    names: list[str] = []
    nan_weights, inf_weights, nan_gradients, inf_gradients = [], [], [], []
    for name, parameter in model.named_parameters():
        names.append(name)
        nan_weights.append(torch.isnan(parameter.data).any())
        inf_weights.append(torch.isinf(parameter.data).any())
        if parameter.grad is not None:
            nan_gradients.append(torch.isnan(parameter.grad).any())
            inf_gradients.append(torch.isinf(parameter.grad).any())
        else:
            nan_gradients.append(torch.zeros((), dtype=torch.bool, device=parameter.device))
            inf_gradients.append(torch.zeros((), dtype=torch.bool, device=parameter.device))
    kinds = ("nan_weights", "inf_weights", "nan_gradients", "inf_gradients")
    if not names:
        return {kind: [] for kind in kinds}
    answers = torch.stack(
        [
            torch.stack(nan_weights),
            torch.stack(inf_weights),
            torch.stack(nan_gradients),
            torch.stack(inf_gradients),
        ]
    ).cpu()
    return {
        kind: [name for name, answer in zip(names, row, strict=True) if answer]
        for kind, row in zip(kinds, answers, strict=True)
    }
