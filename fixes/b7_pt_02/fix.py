"""The NaN and Inf check with one read per device, names kept, and no temporary beyond one mask."""

from __future__ import annotations

import torch
from torch import nn

# torch.isinf would first copy the absolute values: 5 bytes an element for float32 where these take 1.
QUESTIONS = (torch.isnan, torch.isposinf, torch.isneginf)


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
    tensors = _tensors(model)
    flags = _ask(list(tensors.values()))
    for (name, kind), (nan, positive, negative) in zip(tensors, flags, strict=True):
        if nan:
            report[f"nan_{kind}"].append(name)
        if positive or negative:
            report[f"inf_{kind}"].append(name)
    return report


def _tensors(model: nn.Module) -> dict[tuple[str, str], torch.Tensor]:
    """Every tensor to look at, by parameter name and kind, in the model's order."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[name, "weights"] = parameter.data
        if parameter.grad is not None:
            tensors[name, "gradients"] = parameter.grad
    return tensors


def _ask(tensors: list[torch.Tensor]) -> list[list[bool]]:
    """One row of answers to QUESTIONS for each tensor; every device works before the first one is read."""
    places: dict[torch.device, list[int]] = {}
    for place, tensor in enumerate(tensors):
        places.setdefault(tensor.device, []).append(place)
    flags = {device: _flags([tensors[place] for place in on]) for device, on in places.items()}
    answers: list[list[bool]] = [[] for _ in tensors]
    for device, on in places.items():
        for place, row in zip(on, flags[device].tolist(), strict=True):
            answers[place] = row
    return answers


def _flags(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Answers for tensors of one device, of shape ``(len(tensors), len(QUESTIONS))`` and still there."""
    flags = torch.empty(len(tensors), len(QUESTIONS), dtype=torch.bool, device=tensors[0].device)
    for tensor, row in zip(tensors, flags.unbind(), strict=True):
        values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        for question, flag in zip(QUESTIONS, row.unbind(), strict=True):
            torch.any(question(values), out=flag)
    return flags
