"""Operators of other libraries whose cost on CUDA a program declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from finding_tickets.measure.meter import SimulatedMeter
from finding_tickets.measure.run import check_declared, run
from finding_tickets.measure.state import unpatched
from finding_tickets.measure.tasks import CannotMeasureError
from finding_tickets.workload import Point, Workload
from simcuda import OpCost, OperationCall, SimulatedCuda
from simcuda.costs import declared

NAMESPACE = "simcuda_tests_declared"
ODD = OpCost(launches=3, waits=1, copies=(("d2h", 40),), temporaries=(512,))


def declare(name: str, found: Any = OpCost()) -> None:  # noqa: B008 - it does not change
    """Declare an operator of this namespace by a function that returns always the same."""
    simcuda.cost(f"{NAMESPACE}::{name}")(lambda _: found)


@pytest.fixture(autouse=True)
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[torch.Tensor], torch.Tensor]]:
    """An operator whose kernel for the CPU reads a value, which nobody sees."""
    monkeypatch.setattr(declared, "_declared", {})
    make: Any = torch.library.Library
    library = make(NAMESPACE, "DEF")
    library.define("odd(Tensor x) -> Tensor")
    library.impl("odd", lambda x: x * x.sum().item(), "CPU")
    library.define("made(Tensor x) -> Tensor")
    library.impl("made", lambda x: x + 1, "CompositeImplicitAutograd")
    operator: Callable[[torch.Tensor], torch.Tensor] = getattr(torch.ops, NAMESPACE).odd
    yield operator
    library._destroy()


def test_undeclared_it_is_unknown_and_declared_it_counts(gpu: SimulatedCuda, odd: Any) -> None:
    """The declaration holds from then on, and the measurement lists it with its cost."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as before:
        odd(x)
    assert ((f"{NAMESPACE}.odd.default",), 0) == (before.unknown, before.syncs)
    for _ in range(2):  # the same again is the same
        declare("odd", ODD)
    with gpu.measure() as cost:
        assert [3.0] * 3 == odd(x).tolist()
    # What is declared, and the list that is read: 3 floats of 4 bytes.
    assert (3, 2, 2, 40 + 12) == (cost.launches, cost.syncs, cost.d2h, cost.d2h_bytes)
    # The temporary of 512 bytes, and the result of 12.
    assert (2, 524) == (cost.allocations, cost.peak_bytes)
    assert ((), (f"{NAMESPACE}.odd, declared",)) == (cost.unknown, cost.approximate)


def test_an_overload_may_be_declared_apart(gpu: SimulatedCuda, odd: Any) -> None:
    """It goes before what is declared for all overloads."""
    simcuda.cost(f"{NAMESPACE}::odd")(lambda _: OpCost(waits=2))
    simcuda.cost(f"{NAMESPACE}::odd.default")(lambda _: OpCost(waits=1))
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        odd(x)
    assert (1, f"{NAMESPACE}.odd.default, declared") == (cost.syncs, *cost.approximate)


def test_of_kernels_in_python_that_of_the_device_runs(gpu: SimulatedCuda) -> None:
    """What is on the host has its own."""
    assert gpu
    x = torch.ones(3, device="cuda")
    custom: Any = torch.library.custom_op
    both = custom(f"{NAMESPACE}::both", mutates_args=(), device_types="cpu")(_clone)
    both.register_kernel("cuda")(torch.Tensor.neg)
    assert [[-1.0] * 3, [1.0] * 3] == [both(x).tolist(), both(x.cpu()).tolist()]


@pytest.mark.parametrize("key", ["CUDA", "CompositeExplicitAutograd"])
def test_python_code_of_a_library_is_counted_by_what_it_calls(gpu: SimulatedCuda, key: str) -> None:
    """Also where it is for CUDA alone: a sum and a product of 3 floats, of which the sum is read."""
    fragment: Any = torch.library.Library
    library = fragment(NAMESPACE, "FRAGMENT")
    library.define("python(Tensor x) -> Tensor")
    library.impl("python", lambda x: x * x.sum().item(), key)
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        result = getattr(torch.ops, NAMESPACE).python(x)
    with pytest.raises(ValueError, match="made of other operations"):
        declare("python")
    assert result.is_cuda
    assert [3.0] * 3 == result.tolist()
    library._destroy()
    assert (2, 1, 4, ()) == (cost.launches, cost.syncs, cost.d2h_bytes, cost.unknown)


def test_a_kernel_of_c_for_cuda_alone_does_not_run(
    gpu: SimulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what would."""
    assert gpu
    fragment: Any = torch.library.Library
    library = fragment(NAMESPACE, "FRAGMENT")
    library.define("alone(Tensor x) -> Tensor")
    library.impl("alone", torch.Tensor.clone, "CUDA")
    # What C++ registers is not listed here.
    monkeypatch.setattr(torch.library, "_impls", set())
    with pytest.raises(NotImplementedError, match=r"alone has a kernel for CUDA alone"):
        getattr(torch.ops, NAMESPACE).alone(torch.ones(3, device="cuda"))
    monkeypatch.undo()
    library._destroy()


def test_a_name_may_be_declared_before_it_is_defined(gpu: SimulatedCuda) -> None:
    """Programs declare when they begin, and load the library later."""
    declare("later")
    fragment: Any = torch.library.Library
    library = fragment(NAMESPACE, "FRAGMENT")
    library.define("later(Tensor x) -> Tensor")
    library.impl("later", torch.Tensor.clone, "CPU")
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        getattr(torch.ops, NAMESPACE).later(x)
    library._destroy()
    assert (0, 0, ()) == (cost.launches, cost.syncs, cost.unknown)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten::sum", "aten::sum is PyTorch's own"),
        ("sum", "'sum' is no name of an operator, such as mylib::scan"),
        (f"{NAMESPACE}::made", "made of other operations"),
        ("torchvision::nms", "torchvision::nms has a rule already"),
    ],
)
def test_what_cannot_be_declared_is_refused(name: str, message: str) -> None:
    """What is known by other means stays so; each message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        simcuda.cost(name)
    assert not declared.declarations()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (3, "TypeError: 3 is no simcuda.OpCost"),
        (OpCost(launches=-1), "ValueError: a cost is made of whole numbers from 0, not of -1"),
        (OpCost(copies=(("d2h", 1.5),)), "not of 1.5"),  # type: ignore[arg-type]  # wrong on purpose
        (OpCost(waits=True), "not of True"),
        (OpCost(copies=(("up", 8),)), "no copy of the kind 'up'"),
        (OpCost(copies=5), "TypeError"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_a_cost_that_makes_no_sense_is_unknown(
    gpu: SimulatedCuda, odd: Any, returned: Any, message: str
) -> None:
    """The operator is named with what is wrong, and counts as one whose waits nobody knows."""
    declare("odd", returned)
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        odd(x)
    (unknown,) = cost.unknown
    assert unknown.startswith(f"{NAMESPACE}.odd.default, whose declared cost fails: ")
    assert message in unknown
    assert () == cost.approximate


def test_a_cost_is_a_function_of_the_call(gpu: SimulatedCuda, odd: Any) -> None:
    """It sees sizes and results, and costs nothing itself; one that raises is unknown with its reason."""

    @simcuda.cost(f"{NAMESPACE}::odd")
    def find(call: OperationCall) -> OpCost:
        x = call.argument("x")
        assert x.shape == call.outputs[0].shape
        return OpCost(launches=10 // len(x) + int((x + x).sum().item()) // 100)

    found = []
    for size in (2, 5, 0):
        x = torch.ones(size, device="cuda")
        with gpu.measure() as cost:
            odd(x)
        found.append((cost.launches, cost.syncs, cost.unknown))
    # 10 // 2 and 10 // 5; without a declared cost an operator is one kernel over its result, which is empty.
    reason = "integer division or modulo by zero"
    unknown = f"{NAMESPACE}.odd.default, whose declared cost fails: ZeroDivisionError: {reason}"
    assert [(5, 0, ()), (2, 0, ()), (0, 0, (unknown,))] == found


def test_python_code_is_counted_instead() -> None:
    """A custom operator without a kernel of its own is what it calls."""
    custom: Any = torch.library.custom_op
    custom(f"{NAMESPACE}::custom", mutates_args=())(_clone)
    with pytest.raises(ValueError, match="made of other operations"):
        declare("custom")


def _clone(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def test_another_declaration_is_an_error() -> None:
    """It names the first one, which stays."""
    declare("odd", ODD)
    with pytest.raises(ValueError, match=r"odd is declared already, by .*declare.<locals>.<lambda>"):
        simcuda.cost(f"{NAMESPACE}::odd")(lambda _: OpCost(waits=0))


def test_to_declare_is_no_tampering() -> None:
    """The block is not found to have replaced anything."""
    with unpatched():
        declare("odd", ODD)
    assert f"{NAMESPACE}.odd, declared" in declared.declarations()


def test_measured_code_may_not_declare_what_is_counted_for_it(odd: Any) -> None:
    """A variant that hides its reads in an operator is not measured; a verifier may declare one."""

    def found(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = odd(x)
        return result

    declare("odd")
    workload = Workload(ticket="X", build=lambda *_: (torch.ones(3, device="cuda"),), sweep=[Point(n=1)])
    runs = run(workload, {"found": found}, SimulatedMeter(), Path.cwd()).runs["found"]
    with pytest.raises(CannotMeasureError, match="by the code that is measured; a verifier may declare it"):
        check_declared(runs, ())
    check_declared(runs, declared.declarations())
