"""A run that replaces parts of torch is noticed, and torch is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import workload

from finding_tickets.measure import results
from finding_tickets.measure.meter import SimulatedMeter
from finding_tickets.measure.processes.isolation import Isolation, Task
from finding_tickets.measure.run import run
from finding_tickets.measure.state import unpatched
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
    name = "added_by_a_library"
    try:
        with unpatched():
            setattr(torch.nn.Module, name, answer)
        assert answer is getattr(torch.nn.Module, name)
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


def nothing(*_: Any, **__: Any) -> None:
    """What stands in for a function."""


@pytest.mark.parametrize("part", ["__code__", "__defaults__", "__kwdefaults__"])
def test_code_that_is_replaced_in_place_is_named_and_put_back(part: str) -> None:
    """As a name is that is replaced."""
    before, other = getattr(Ledger.count, part), {"__code__": nothing.__code__, "__defaults__": (0,)}
    with pytest.raises(CannotMeasureError, match=r"^replaces simcuda\.ledger\.Ledger\.count, w"), unpatched():
        setattr(Ledger.count, part, other.get(part, {"order": 1}))
    assert before is getattr(Ledger.count, part)


def test_a_worker_finds_the_tables_of_operators_prepared(isolation: Isolation) -> None:
    """To enter them in each worker would take longer than most measurements; so would looking at all modules.

    That CUDA is missing is said only where PyTorch was built without it.
    """
    code = """
import torch
from simcuda import simulation
from simcuda.device.dispatch_key import register
entered = [each.cache_info().currsize for each in (register, simulation._say_that_cuda_is_missing)]
assert entered == [1, int(torch.version.cuda is None)], (entered, torch.__version__, torch._C._has_cuda)
from finding_tickets.measure import state
from simcuda.torch_api import patches
assert state._functions
assert bool(patches._outside) != torch._C._has_cuda
"""
    task = Task(target="builtins:exec", payload=code, root=Path(), timeout=60.0, memory=1 << 30)
    assert [None] == [outcome.reason for _, outcome in isolation.run({0: task})]


def test_measuring_replaces_nothing() -> None:
    """Nor do imports, compiled code and what torch's compiler wraps for good."""
    checked = torch.distributions.Distribution._validate_args
    with unpatched():
        import simcuda.real.device

        with simcuda.device() as gpu, gpu.measure() as counted:
            torch.nn.Linear(2, 2, device="cuda")(torch.ones(2, device="cuda")).sum().backward()
            assert [1.0] == torch.ones(1, device="cuda").tolist()
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    # The compiler turns the checks off, which other tests count.
    torch.distributions.Distribution.set_default_validate_args(checked)
    # That of tolist().
    assert 1 == counted.syncs
