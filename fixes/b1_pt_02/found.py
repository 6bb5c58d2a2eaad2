"""The rollback as the ticket found it: it waits for everything that runs on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def execute_rollback(model: nn.Module, last_good_state: Mapping[str, Any], device: torch.device) -> nn.Module:
    """Load ``last_good_state``, which lies in host memory, into ``model`` on ``device``.

    The wait covers every stream, also one that this function has never heard of.

    Returns:
        The model, with its parameters, buffers and extra state as they were.
    """
    state = dict(last_good_state)
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            state[key] = value.to(device, non_blocking=True)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    model.load_state_dict(state)
    return model
