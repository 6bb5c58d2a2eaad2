"""Devices that are given by their number alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.torch_api import factories


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """Two simulated devices."""
    with simcuda.device(2) as simulated:
        yield simulated


Make = Callable[[torch.Tensor], torch.Tensor]

MADE: dict[str, Make] = {
    "zeros": lambda _: torch.zeros(2, 3, device=1),
    "arange": lambda _: torch.arange(3, device=1),
    "normal": lambda _: torch.normal(0.0, 1.0, (2,), device=1),
    "tensor": lambda _: torch.tensor([1.0], device=1),
    "like": lambda x: torch.ones_like(x, device=1),
    "new": lambda x: x.new_full((2,), 3.0, device=1),
    "current": lambda _: torch.empty(2, device=torch.cuda.current_device() + 1),
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


@pytest.mark.usefixtures("gpu")
def test_a_number_without_a_device_is_refused() -> None:
    """The error is CUDA's."""
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(3, device=2)


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
