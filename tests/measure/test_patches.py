"""A run that replaces parts of torch is noticed, and torch is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import workload

from finding_tickets.measure import results
from finding_tickets.measure.meter import SimulatedMeter
from finding_tickets.measure.run import run
from finding_tickets.measure.state import changed_names, state, unpatched
from finding_tickets.measure.tasks import CannotMeasureError
from simcuda.costs.rules import without_rule
from simcuda.ledger import Ledger


def answer(*_: object) -> float:
    """What stands in for a function of torch."""
    return 0.0


NAMES: list[tuple[Any, str]] = [
    # ``item`` is inherited: replacing it adds a name to the class.
    (torch.Tensor, "item"),
    (torch.Tensor, "backward"),
    (torch.cuda, "synchronize"),
    (torch.nn.functional, "relu"),
    # What counts and compares.
    (results, "difference"),
    (Ledger, "count"),
]


@pytest.mark.parametrize(("owner", "name"), NAMES)
def test_a_replaced_function_is_named_and_put_back(owner: Any, name: str) -> None:
    """The full name is in the error, and afterwards everything is as before."""
    before, own = getattr(owner, name), name in vars(owner)
    of_class = isinstance(owner, type)
    prefix = f"{owner.__module__}.{owner.__qualname__}" if of_class else owner.__name__
    with pytest.raises(CannotMeasureError, match=f"^replaces {prefix}.{name}, which"), unpatched():
        setattr(owner, name, answer)
    assert (before, own) == (getattr(owner, name), name in vars(owner))


def test_a_method_that_a_library_adds_to_a_class_of_torch_stays() -> None:
    """It hides nothing, so that no other variant uses it; a property would hide what objects have."""
    name, before = "added_by_a_library", state()
    try:
        with unpatched():
            setattr(torch.nn.Module, name, answer)
        assert answer is getattr(torch.nn.Module, name)
        assert [] == changed_names(before, state())
    finally:
        delattr(torch.nn.Module, name)
    with pytest.raises(CannotMeasureError, match=name), unpatched():
        setattr(torch.nn.Module, name, property(answer))
    assert not hasattr(torch.nn.Module, name)


def test_a_replaced_constant_is_named_and_put_back() -> None:
    """The tables by which the device counts are as good as its functions."""
    before = without_rule.NEVER_WAITING
    message = r"^replaces simcuda\.costs\.rules\.without_rule\.N"
    with pytest.raises(CannotMeasureError, match=message), unpatched():
        vars(without_rule)["NEVER_WAITING"] = {}
    assert before is without_rule.NEVER_WAITING


def test_what_is_replaced_before_an_error_is_its_reason() -> None:
    """It is put back then too, and named: what raised may only have met it."""
    before = torch.nn.functional.relu

    def replace_and_raise() -> None:
        vars(torch.nn.functional)["relu"] = answer
        raise TypeError("what relu returns is no tensor")

    with pytest.raises(CannotMeasureError, match=r"torch\.nn\.functional\.relu"), unpatched():
        replace_and_raise()
    assert before is torch.nn.functional.relu


def test_what_torch_replaces_itself_may_change() -> None:
    """Its compiler wraps functions when it is loaded."""
    before, wrapped = torch.cuda.synchronize, torch._compile._disable_dynamo(torch.cuda.synchronize)
    with unpatched():
        vars(torch.cuda)["synchronize"] = wrapped
    kept = torch.cuda.synchronize
    vars(torch.cuda)["synchronize"] = before
    assert wrapped is kept


def test_another_function_of_torch_may_not_take_its_place() -> None:
    """That the code is torch's says nothing, and a file's name can be written by anybody."""
    own: dict[str, Any] = {}
    exec(compile("def synchronize(device=None): ...", torch.cuda.__file__, "exec"), own)  # noqa: S102 - named so
    for other in (torch.cuda.is_available, own["synchronize"]):
        with (
            pytest.raises(CannotMeasureError, match=r"^replaces torch\.cuda\.synchronize, which"),
            unpatched(),
        ):
            vars(torch.cuda)["synchronize"] = other


def test_a_variant_that_patches_is_not_measured() -> None:
    """The simulated device's own hooks are looked at too: replacing them would hide a wait."""

    def hide(values: torch.Tensor) -> torch.Tensor:
        vars(torch.cuda)["synchronize"] = answer
        torch.cuda.synchronize()
        return values

    with pytest.raises(CannotMeasureError) as caught:
        run(workload(2), {"found": torch.sum, "fix": hide}, SimulatedMeter(), Path("/repository"))
    assert str(caught.value).startswith("fix at n=2: replaces torch.cuda.synchronize, which")
    assert answer is not vars(torch.cuda)["synchronize"]
