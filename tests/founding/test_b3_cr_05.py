"""Combining gradient norms on the CPU, where every device is the same one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, nan
from typing import Any

import pytest
import torch

Load = Callable[[str, str], Callable[..., Any]]
NAMES = ["found", "alternative"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("norms", "expected"), [([], 0.0), ([5.0], 5.0), ([2.0, 3.0, 6.0], 7.0), ([0.0], 0.0)]
)
def test_the_norm_of_the_norms(variant: Load, name: str, norms: list[float], expected: float) -> None:
    """Norms combine as the sides of a right angle do."""
    # 4 + 9 + 36 = 49, whose root is 7; all numbers are exact in float32.
    assert expected == variant("b3_cr_05", name)([torch.tensor(norm) for norm in norms]).item()


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_inf_stay_visible(variant: Load, name: str) -> None:
    """A norm that is not finite makes the whole norm not finite."""
    combine = variant("b3_cr_05", name)
    assert inf == combine([torch.tensor(1.0), torch.tensor(inf)]).item()
    assert isnan(combine([torch.tensor(1.0), torch.tensor(nan)]).item())


@pytest.mark.parametrize("name", NAMES)
def test_norms_of_two_types_combine(variant: Load, name: str) -> None:
    """A norm in half precision combines with one in single precision."""
    norms = [torch.tensor(3.0), torch.tensor(4.0, dtype=torch.bfloat16)]
    assert 5.0 == variant("b3_cr_05", name)(norms).item()
