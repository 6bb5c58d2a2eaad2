"""The gradient statistics on the CPU: counts by hand, and what each variant cannot do."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch
from torch import nn

Load = Callable[[str, str], Callable[..., Any]]


def parameters(*gradients: torch.Tensor | None) -> list[nn.Parameter]:
    """One parameter for each gradient, in the gradient's layout; None for a parameter without one."""
    made = []
    for gradient in gradients:
        values = torch.zeros(2) if gradient is None else torch.zeros_like(gradient)
        parameter = nn.Parameter(values)
        parameter.grad = gradient
        made.append(parameter)
    return made


def mixed() -> list[nn.Parameter]:
    """2 NaN, 3 Inf and 4 zeros among 16 elements of three types."""
    return parameters(
        torch.tensor([nan, 0.0, 0.0, 1.0, -inf]),
        None,
        torch.tensor([[inf, 2.0, 3.0]], dtype=torch.float16),
        torch.empty(0, 7),
        torch.tensor([-0.0, 0.0, nan, inf, 5.0, 6.0, 7.0, 8.0], dtype=torch.bfloat16),
    )


@pytest.mark.parametrize("name", ["found", "fix"])
def test_all_statistics_are_counted(variant: Load, name: str) -> None:
    """NaN, Inf, the ratio of zeros and the element count come back in one tensor."""
    # 5 + 3 + 0 + 8 = 16 elements; 4 zeros, negative zero among them: 4 / 16 = 0.25.
    assert [2.0, 3.0, 0.25, 16.0] == variant("b7_pt_03", name)(mixed()).tolist()


def test_the_recommended_loop_has_no_ratio_of_zeros(variant: Load) -> None:
    """NaN, Inf and the element count are right; the fourth statistic is not among the results."""
    assert [2.0, 3.0, 16.0] == variant("b7_pt_03", "recommended")(mixed()).tolist()


@pytest.mark.parametrize("name", ["found", "fix"])
@pytest.mark.parametrize(
    "given", [[], parameters(None, None), parameters(torch.empty(0))], ids=["none", "no gradient", "empty"]
)
def test_nothing_to_count_gives_zeros(variant: Load, name: str, given: list[nn.Parameter]) -> None:
    """Without an element every statistic is 0; the ratio does not divide by the element count of 0."""
    assert [0.0, 0.0, 0.0, 0.0] == variant("b7_pt_03", name)(given).tolist()


def test_only_the_fix_takes_gradients_that_are_not_contiguous(variant: Load) -> None:
    """A transposed gradient is counted by the fix and refused by the flat views of the others."""
    transposed = parameters(torch.tensor([[0.0, nan, 1.0], [2.0, inf, 0.0]]).t())
    # 6 elements, 1 NaN, 1 Inf, 2 zeros.
    assert [1.0, 1.0, 2 / 6, 6.0] == variant("b7_pt_03", "fix")(transposed).tolist()
    for name in ("found", "recommended"):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            variant("b7_pt_03", name)(transposed)


def test_the_fix_counts_complex_gradients_like_found(variant: Load) -> None:
    """An element counts once, whichever of its parts is NaN or Inf."""
    given = parameters(torch.tensor([complex(nan, nan), complex(1, inf), complex(0, 0), complex(2, 0)]))
    # 4 elements: 1 NaN, 1 Inf, 1 zero.
    for name in ("found", "fix"):
        assert [1.0, 1.0, 0.25, 4.0] == variant("b7_pt_03", name)(given).tolist()


def test_the_fix_leaves_the_gradients_alone(variant: Load) -> None:
    """Counting changes no gradient."""
    given = parameters(torch.tensor([0.0, 3.0]))
    variant("b7_pt_03", "fix")(given)
    assert [[0.0, 3.0]] == [parameter.grad.tolist() for parameter in given if parameter.grad is not None]
