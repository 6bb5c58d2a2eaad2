"""The rollback on the CPU, where no variant has to wait for anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from finding_tickets.workload import Point

Load = Callable[[str, str], Callable[..., Any]]
NAMES = ["found", "recommended", "unsynchronised"]
POINT = Point(tensors=4, pageable=1, written=2, remote=0, elsewhere=0, devices=1, large=0)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_buffers_and_extra_state_come_back(
    variant: Load, arguments: Callable[[str, Point], tuple[Any, ...]], name: str
) -> None:
    """After the rollback the model holds what was saved, the value that is no tensor included."""
    model, saved, device = arguments("b1_pt_02", POINT)
    rolled_back = variant("b1_pt_02", name)(model, saved, device).state_dict()
    assert list(saved) == list(rolled_back)
    # Four tensors, an empty one and the extra state.
    assert 6 == len(saved)
    # The saved epoch is one more than the model's.
    assert 1 == rolled_back["_extra_state"]
    assert all(torch.equal(rolled_back[key], saved[key]) for key in saved if key != "_extra_state")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_without_state_rolls_back(variant: Load, name: str) -> None:
    """An empty state is loaded without complaint, and the model itself comes back."""
    model = nn.Module()
    assert variant("b1_pt_02", name)(model, {}, torch.device("cpu")) is model


@pytest.mark.parametrize("name", NAMES)
def test_the_saved_state_survives_the_rollback(
    variant: Load, arguments: Callable[[str, Point], tuple[Any, ...]], name: str
) -> None:
    """What was saved is not touched, so that one can roll back to it again."""
    model, saved, device = arguments("b1_pt_02", POINT)
    before = {key: value.clone() for key, value in saved.items() if isinstance(value, torch.Tensor)}
    variant("b1_pt_02", name)(model, saved, device)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert all(torch.equal(before[key], saved[key]) for key in before)
