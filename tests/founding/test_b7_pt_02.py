"""The NaN and Inf check on the CPU: every variant's answer, where it has one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch
from torch import nn

Load = Callable[[str, str], Callable[..., Any]]
CLEAN: dict[str, list[str]] = {"nan_weights": [], "inf_weights": [], "nan_gradients": [], "inf_gradients": []}
NAMING = ["found", "applied", "fix"]


def model(**weights: torch.Tensor) -> nn.Module:
    """A model with these parameters, none of which has a gradient yet."""
    module = nn.Module()
    for name, values in weights.items():
        module.register_parameter(name, nn.Parameter(values, requires_grad=False))
    return module


def poisoned() -> nn.Module:
    """A model with one fault of each kind, each in another parameter."""
    module = model(
        clean=torch.ones(3),
        weight=torch.tensor([[1.0, nan], [0.0, 2.0]]).t(),
        bias=torch.tensor([-inf, 0.0], dtype=torch.bfloat16),
        both=torch.tensor([inf, nan], dtype=torch.float16),
        nothing=torch.empty(0, 4),
        scale=torch.tensor(1.0),
    )
    module.get_parameter("clean").grad = torch.tensor([0.0, inf, -inf])
    module.get_parameter("scale").grad = torch.tensor(nan)
    module.get_parameter("nothing").grad = torch.empty(0, 4)
    return module


@pytest.mark.parametrize("name", NAMING)
def test_every_fault_is_named_where_it_is(variant: Load, name: str) -> None:
    """Each kind of fault is reported with the parameters that have it, in the model's order."""
    # By construction: NaN in `weight` and `both`, Inf in `bias` and `both`; gradients: see poisoned().
    expected = {
        "nan_weights": ["weight", "both"],
        "inf_weights": ["bias", "both"],
        "nan_gradients": ["scale"],
        "inf_gradients": ["clean"],
    }
    assert expected == variant("b7_pt_02", name)(poisoned())


@pytest.mark.parametrize("name", NAMING)
def test_a_model_without_parameters_has_no_faults(variant: Load, name: str) -> None:
    """Nothing to look at gives an empty report, not an error."""
    assert CLEAN == variant("b7_pt_02", name)(nn.Module())


@pytest.mark.parametrize("name", NAMING)
def test_integers_and_empty_tensors_are_clean(variant: Load, name: str) -> None:
    """Types that cannot hold NaN and tensors without elements are looked at without complaint."""
    weights = {"counts": torch.tensor([1, 2]), "mask": torch.tensor([True]), "nothing": torch.empty(0)}
    assert CLEAN == variant("b7_pt_02", name)(model(**weights))


@pytest.mark.parametrize("name", NAMING)
def test_complex_parameters_are_looked_at_in_both_parts(variant: Load, name: str) -> None:
    """A fault in the real or in the imaginary part is a fault."""
    weights = {"real": torch.tensor([complex(nan, 1)]), "imaginary": torch.tensor([complex(0, -inf)])}
    expected = CLEAN | {"nan_weights": ["real"], "inf_weights": ["imaginary"]}
    assert expected == variant("b7_pt_02", name)(model(**weights))


def test_the_recommended_batching_answers_for_the_whole_model_only(variant: Load) -> None:
    """The concatenation says that there is NaN and that there is Inf, and not where."""
    contiguous = model(one=torch.tensor([nan]), two=torch.tensor([inf]), three=torch.ones(2))
    assert {"has_nan": True, "has_inf": True} == variant("b7_pt_02", "recommended")(contiguous)
    assert {"has_nan": False, "has_inf": False} == variant("b7_pt_02", "recommended")(nn.Module())


def test_the_recommended_batching_fails_on_a_parameter_that_is_not_contiguous(variant: Load) -> None:
    """The flat view that it asks for does not exist for a transposed matrix."""
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        variant("b7_pt_02", "recommended")(poisoned())
