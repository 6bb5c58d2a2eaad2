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
from finding_tickets.measure.state import changed_names, state, unpatched
from finding_tickets.measure.tasks import CannotMeasureError
from finding_tickets.workload import Point, Workload
from simcuda import SimulatedCuda
from simcuda.cost import declared

NAMESPACE = "simcuda_tests_declared"
COST = "launches 3, waits 1, d2h 40 B, temporary 512 B"


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


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device."""
    with simcuda.device() as simulated:
        yield simulated


def test_undeclared_it_is_unknown_and_declared_it_counts(gpu: SimulatedCuda, odd: Any) -> None:
    """The declaration holds from then on, and the measurement lists it with its cost."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as before:
        odd(x)
    assert ((f"{NAMESPACE}.odd.default",), 0) == (before.unknown, before.syncs)
    for _ in range(2):  # the same again is the same
        simcuda.declare(f"{NAMESPACE}::odd", launches=3, waits=1, d2h=[40], temporaries=[512])
    with gpu.measure() as cost:
        assert [3.0] * 3 == odd(x).tolist()
    # What is declared, and the list that is read: 3 floats of 4 bytes.
    assert (3, 2, 2, 40 + 12) == (cost.launches, cost.syncs, cost.d2h, cost.d2h_bytes)
    # The temporary of 512 bytes, and the result of 12.
    assert (2, 524) == (cost.allocations, cost.peak_bytes)
    assert ((), (f"{NAMESPACE}.odd, declared: {COST}",)) == (cost.unknown, cost.approximate)


def test_an_overload_may_be_declared_apart(gpu: SimulatedCuda, odd: Any) -> None:
    """It goes before what is declared for all overloads."""
    simcuda.declare(f"{NAMESPACE}::odd", waits=2)
    simcuda.declare(f"{NAMESPACE}::odd.default", waits=1)
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        odd(x)
    assert (1, f"{NAMESPACE}.odd.default, declared: launches 1, waits 1") == (cost.syncs, *cost.approximate)


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
        simcuda.declare(f"{NAMESPACE}::python")
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
    simcuda.declare(f"{NAMESPACE}::later", launches=0)
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
    ("name", "how", "message"),
    [
        ("aten::sum", {}, "aten::sum is PyTorch's own"),
        ("sum", {}, "'sum' is no name of an operator, such as mylib::scan"),
        (f"{NAMESPACE}::made", {}, "made of other operations"),
        (f"{NAMESPACE}::odd", {"launches": -1}, "a whole number from 0, not -1"),
        (f"{NAMESPACE}::odd", {"d2h": [8, 1.5]}, "a whole number from 0, not 1.5"),
        (f"{NAMESPACE}::odd", {"waits": True}, "a whole number from 0, not True"),
        ("torchvision::nms", {"waits": 0}, "torchvision::nms has a rule already"),
    ],
)
def test_what_cannot_be_declared_is_refused(name: str, how: dict[str, Any], message: str) -> None:
    """What is known by other means stays so; each message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        simcuda.declare(name, **how)
    assert not declared.declarations()


def test_python_code_is_counted_instead() -> None:
    """A custom operator without a kernel of its own is what it calls."""
    custom: Any = torch.library.custom_op
    custom(f"{NAMESPACE}::custom", mutates_args=())(_clone)
    with pytest.raises(ValueError, match="made of other operations"):
        simcuda.declare(f"{NAMESPACE}::custom")


def _clone(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def test_another_declaration_is_an_error() -> None:
    """It names both; the first one stays."""
    simcuda.declare(f"{NAMESPACE}::odd", waits=1)
    both = "declared already, as launches 1, waits 1; this says launches 1, waits 0"
    with pytest.raises(ValueError, match=both):
        simcuda.declare(f"{NAMESPACE}::odd")


def test_to_declare_is_no_tampering() -> None:
    """Neither a block nor a whole process is found to have replaced anything."""
    before = state()
    with unpatched():
        simcuda.declare(f"{NAMESPACE}::odd", waits=1)
    assert [] == changed_names(before, state())


def test_measured_code_may_not_declare_what_is_counted_for_it(odd: Any) -> None:
    """A variant that hides its reads in an operator is not measured; a verifier may declare one."""

    def found(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = odd(x)
        return result

    simcuda.declare(f"{NAMESPACE}::odd", waits=0)
    workload = Workload(ticket="X", build=lambda *_: (torch.ones(3, device="cuda"),), sweep=[Point(n=1)])
    runs = run(workload, {"found": found}, SimulatedMeter(), Path.cwd()).runs["found"]
    with pytest.raises(CannotMeasureError, match="by the code that is measured; a verifier may declare it"):
        check_declared(runs, ())
    check_declared(runs, declared.declarations())
