"""Devices that are given by their number alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.torch_api import factories

DEVICES = 2


Make = Callable[[torch.Tensor], torch.Tensor]

MADE: dict[str, Make] = {
    "zeros": lambda _: torch.zeros(2, 3, device=1),
    "arange": lambda _: torch.arange(3, device=1),
    "normal": lambda _: torch.normal(0.0, 1.0, (2,), device=1),
    "tensor": lambda _: torch.tensor([1.0], device=1),
    "like": lambda x: torch.ones_like(x, device=1),
    "new": lambda x: x.new_full((2,), 3.0, device=1),
    "current": lambda _: torch.empty(2, device=torch.cuda.current_device() + 1),
    "a device": lambda _: torch.zeros(2, device=torch.device(1)),
    "to": lambda x: x.to(1),
    "module": lambda _: torch.nn.Linear(2, 2, device=1).weight,
    "module to": lambda _: torch.nn.Linear(2, 2).to(1).weight,
    "module to, named": lambda _: torch.nn.Linear(2, 2).to(device=1, dtype=torch.float16).weight,
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_number_is_a_cuda_device(make: Make) -> None:
    """What is made on or moved to device 1 is on ``cuda:1``."""
    assert "cuda:1" == str(make(torch.ones(3)).device)


@pytest.mark.usefixtures("gpu")
def test_every_factory_takes_a_number() -> None:
    """Those of torch that take no other argument than a size, and all methods."""
    sized = ("empty", "ones", "rand", "randn", "zeros", "eye", "arange", "randperm", "hann_window")
    assert {getattr(torch, name) for name in sized} < set(factories.FACTORIES)
    assert {"cuda:1"} == {str(getattr(torch, name)(3, device=1).device) for name in sized}
    arguments: dict[str, tuple[Any, ...]] = {"new_full": ((3,), 1.0), "new_empty_strided": ((3,), (1,))}
    made = [
        getattr(torch.ones(1), name)(*arguments.get(name, ((3,),)), device=1) for name in factories.METHODS
    ]
    assert {"cuda:1"} == {str(tensor.device) for tensor in made}


def test_a_module_moves_to_where_a_tensor_is(gpu: SimulatedCuda) -> None:
    """``Module.to`` takes a tensor's device and dtype; both parameters are copied."""
    x = torch.ones(2, device="cuda:1", dtype=torch.float16)
    model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    with gpu.measure() as cost:
        model.to(x)
        other.to(tensor=x, non_blocking=True)
    assert (4, 2, 2) == (cost.h2d, cost.syncs, cost.implicit_syncs)
    places = {(str(p.device), p.dtype) for p in (*model.parameters(), *other.parameters())}
    assert {("cuda:1", torch.float16)} == places


def make_zeros(x: torch.Tensor) -> torch.Tensor:
    """A function to be scripted."""
    return x + torch.zeros(2) + torch.ones_like(x)


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_factories_can_still_be_scripted() -> None:
    """TorchScript takes a factory for what it is."""
    script: Any = torch.jit.script
    assert [2.0, 2.0] == script(make_zeros)(torch.ones(2)).tolist()


def largest_of(x: torch.Tensor) -> torch.Tensor:
    """A function to be scripted, of others that have CUDA's branches."""
    dropped = torch.nn.functional.dropout(x, 0.0)
    return torch.max(dropped) + torch.quantile(x, 1.0) + torch.nn.functional.one_hot(x.long(), 4).max()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_functions_with_branches_of_cuda_can_still_be_scripted(gpu: SimulatedCuda) -> None:
    """TorchScript takes each for the operation that it is, and the operations are counted."""
    script: Any = torch.jit.script
    scripted, x = script(largest_of), torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        result = scripted(x)
    assert (3.0, ()) == (result.item(), cost.unknown)
    assert cost.launches > 0


class Named(torch.Tensor):
    """A subclass without a ``__new__`` of its own."""


class Made(torch.Tensor):
    """A subclass that calls the one of tensors, as memory-mapped ones of tensordict do."""

    @staticmethod
    def __new__(cls, data: torch.Tensor) -> Any:
        """The tensor, as one of this class."""
        return torch.Tensor.__new__(cls, data)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("kind", [Named, Made])
@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_tensor_becomes_one_of_a_subclass(kind: Any, device: str) -> None:
    """It shares the memory and the history, on host and device."""
    x = torch.ones(3, device=device, requires_grad=True)
    made = kind(x)
    assert (kind, torch.device(device), True) == (type(made), made.device, made.requires_grad)
    assert x.data_ptr() == made.data_ptr()
    assert (3,) == Named(3).shape


@pytest.mark.usefixtures("gpu")
def test_a_number_alone_is_a_device_and_nothing_else_changes() -> None:
    """As in a build for CUDA; a wrong device is as wrong as ever."""
    assert torch.device("cuda", 1) == torch.device(1)
    with torch.device(1):
        assert "cuda:1" == str(torch.ones(1).device)
    named: Any = torch.device
    assert named("cpu") == named(type="cpu")
    for wrong in (-1, True, None):
        with pytest.raises((RuntimeError, TypeError)):
            named(wrong)


def test_storages_are_made_on_devices(gpu: SimulatedCuda) -> None:
    """Of a number of bytes and of Python data, which is copied there; those of the host stay there."""
    make: Any = torch.UntypedStorage
    with gpu.measure() as cost:
        made, data, host = make(64, device="cuda:1"), make([1, 2], device="cuda"), make(8)
    assert ["cuda:1", "cuda:0", "cpu"] == [str(each.device) for each in (made, data, host)]
    # 64 bytes, and two of Python data, which are copied.
    assert (2, 64, 1, 2) == (cost.allocations, cost.largest_allocation, cost.h2d, cost.h2d_bytes)
    assert [1, 2] == data.tolist()


def test_what_makes_objects_is_put_back() -> None:
    """Afterwards classes make objects as before, also those that were defined meanwhile."""
    kinds: list[Any] = [torch.Tensor, torch.device, torch.UntypedStorage, Named]
    before = [kind.__new__ for kind in kinds]
    with simcuda.device():
        assert before != [kind.__new__ for kind in kinds]
        later: Any = type("Later", (torch.Tensor,), {})
    assert before == [kind.__new__ for kind in kinds]
    assert later is type(later(torch.ones(2)))
    # A static type has no other way to make objects than C++, so that this is an error again.
    if not torch._C._has_cuda:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
            torch.device(0)


@pytest.mark.usefixtures("gpu")
def test_a_file_is_memory_of_the_host_alone(tmp_path: Any) -> None:
    """PyTorch maps no file into a device's memory."""
    (tmp_path / "x").write_bytes(bytes(16))
    assert [0.0] * 4 == torch.from_file(str(tmp_path / "x"), size=4).tolist()
    with pytest.raises(NotImplementedError, match="'aten::from_file' with arguments from the 'CUDA' backend"):
        torch.from_file(str(tmp_path / "x"), size=4, device="cuda")


@pytest.mark.usefixtures("gpu")
def test_what_a_tensor_of_python_data_is_asked_to_be() -> None:
    """Pinned, on the device of another one, or a copy."""
    there = torch.ones(2, device="cuda:1")
    assert torch.tensor([1.0], pin_memory=True).is_pinned()
    assert not torch.tensor([1.0]).is_pinned()
    assert there.device == there.new_tensor([1.0]).device
    copied, same = torch.asarray(there, copy=True), torch.asarray(there)
    there.add_(1)
    assert ([1.0, 1.0], [2.0, 2.0]) == (copied.tolist(), same.tolist())
