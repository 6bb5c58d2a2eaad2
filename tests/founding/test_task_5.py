"""Gradient norms of host and seed on the CPU, with the edge cases that the review names."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from typing import Any

import pytest
import torch
from torch import nn

Load = Callable[[str, str], Callable[..., Any]]
NAMES = ["found", "applied", "fix"]


def parameters(*gradients: list[float] | None) -> list[nn.Parameter]:
    """One parameter for each gradient; None for a parameter without one."""
    made = []
    for values in gradients:
        parameter = nn.Parameter(torch.zeros(len(values or [])))
        parameter.grad = None if values is None else torch.tensor(values)
        made.append(parameter)
    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("host", "seed", "host_norm", "seed_norm"),
    [
        (parameters([2.0, 3.0], [6.0]), parameters([3.0], None, [4.0]), 7.0, 5.0),
        (parameters([3.0, 4.0]), parameters(None), 5.0, 0.0),
        (parameters(None, None), parameters([0.5]), 0.0, 0.5),
        ([], [], 0.0, 0.0),
        (parameters([]), parameters([0.0]), 0.0, 0.0),
    ],
    ids=["both", "host only", "seed only", "neither", "empty and zero"],
)
def test_norms_of_both_sides(
    variant: Load,
    name: str,
    host: list[nn.Parameter],
    seed: list[nn.Parameter],
    host_norm: float,
    seed_norm: float,
) -> None:
    """Each side has its own norm, and a side without gradients has the norm 0."""
    # 4 + 9 + 36 = 7 * 7, 9 + 16 = 5 * 5: exact in float32.
    assert {"host_norm": host_norm, "seed_norm": seed_norm} == variant("task_5", name)(host, seed)


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_on_its_side(variant: Load, name: str) -> None:
    """A NaN among the host's gradients leaves the seed's norm as it is."""
    norms = variant("task_5", name)(parameters([nan], [1.0]), parameters([2.0]))
    assert isnan(norms["host_norm"])
    assert 2.0 == norms["seed_norm"]
