"""Leaving the simulation, in whatever way, gives everything back that it had replaced."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import simcuda
from simcuda.torch_api import refusals

Names = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def _dynamo() -> None:
    """The first optimizer would import it."""
    import_module("torch._dynamo")


PACKAGES = ("torch", "threading", "_thread", "concurrent", "sys")
HOLDS_FOR_EVERY_DEVICE = {"torch._utils._get_device_module"}
"""Caches whose answers are the same without a simulation: here, the module of a type of device."""


def modules() -> list[ModuleType]:
    """All of torch that is loaded, and what else the simulation changes."""
    loaded = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [module for module in loaded if module.__name__.partition(".")[0] in PACKAGES]


def owners() -> Iterator[tuple[str, Any]]:
    """Every module of theirs, and every class in them."""
    for module in modules():
        yield module.__name__, module
        for value in list(vars(module).values()):
            # Asking some deprecated values by isinstance would warn.
            if issubclass(type(value), type) and str(value.__module__).partition(".")[0] in PACKAGES:
                yield f"{value.__module__}.{value.__qualname__}", value


def names() -> Names:
    """What every name stands for."""
    return {name: dict(vars(owner)) for name, owner in owners()}


def changed(before: Names, after: Names) -> list[str]:
    """The names that stand for something else, or that there were not, or are no more."""
    found = []
    for owner, attributes in before.items():
        now = after[owner]
        for name in attributes.keys() | now.keys():
            old, new = attributes.get(name, changed), now.get(name, changed)
            if old is not new and not (isinstance(old, bool | int | float | str) and old == new):
                found.append(f"{owner}.{name}")
    return found


def state() -> dict[str, Any]:
    """What torch remembers in C++, and what Python keeps in lists."""
    is_included: Any = torch._C._dispatch_tls_is_dispatch_key_included
    cuda: Any = torch.cuda
    return {
        "default device": torch.get_default_device(),
        "default type": torch.get_default_dtype(),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "autocast": [torch.is_autocast_enabled("cuda"), *map(torch.get_autocast_dtype, ("cuda", "cpu"))],
        "autocast key": is_included(torch._C.DispatchKey.AutocastCUDA),
        "watching": is_included(torch._C._parse_dispatch_key("Fake")),
        "autocast kernels": torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"),
        "importers": list(sys.meta_path),
        "available": (cuda.is_available(), cuda.device_count(), cuda.is_initialized()),
    }


def train() -> None:
    """Use much of what is simulated, and leave the default device changed."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout()).to("cuda")
    for make in (torch.optim.AdamW, torch.optim.SGD):
        stepper, scaler = make(model.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        with torch.autocast("cuda"):
            loss = model(torch.ones(2, 3, device="cuda")).sum()
        torch.autograd.backward(scaler.scale(loss))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(stepper)
    # These remember what they find.
    remembering: list[Any] = [
        torch.get_device_module,
        torch.cuda.is_bf16_supported,
        torch.cuda.memory_summary,
    ]
    for function in remembering:
        function()
    str(torch.ones(2, device="cuda"))
    list(DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True))  # type: ignore[arg-type]  # as elsewhere
    torch.set_default_device("cuda")


def test_leaving_restores_everything() -> None:
    """Every name in every module and class of torch is as it was, and so is what torch remembers."""
    with simcuda.device():
        train()  # what torch loads and makes at its first use stays
    before, remembered = names(), state()
    with simcuda.device(2):
        train()
        assert torch.cuda.is_available()
    assert [] == changed(before, names())
    assert remembered == state()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, torch.OutOfMemoryError])
def test_leaving_by_an_exception_restores_everything(error: type[BaseException]) -> None:
    """An error in the block, an interrupt and running out of memory leave nothing behind."""
    before, remembered = names(), state()

    def fail() -> None:
        make_stream: Any = torch.cuda.Stream
        torch.set_default_device("cuda")
        with torch.autocast("cuda"), torch.cuda.stream(make_stream()):
            if error is torch.OutOfMemoryError:
                torch.ones(1 << 30)
            raise error

    with pytest.raises(error), simcuda.device(capacity=4 << 20):
        fail()
    assert [] == changed(before, names())
    assert remembered == state()


def test_entering_that_fails_restores_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error half-way through entering leaves nothing behind, and the next simulation works."""
    before, remembered = names(), state()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(refusals, "install", fail)
        with pytest.raises(ZeroDivisionError), simcuda.device():
            pass
    assert [] == changed(before, names())
    assert remembered == state()
    with simcuda.device() as gpu, gpu.measure() as cost:
        torch.ones(1, device="cuda").item()
    assert 1 == cost.syncs


def caches() -> dict[str, Any]:
    """Every function of torch that remembers its answers."""
    found = [value for module in modules() for value in vars(module).values()]
    return {
        f"{function.__module__}.{function.__qualname__}": function
        for function in found
        if type(function) is functools._lru_cache_wrapper
    }


def test_no_cache_remembers_a_simulated_answer() -> None:
    """What torch's caches learned during a simulation is what they would learn without it."""
    for function in caches().values():
        function.cache_clear()
    with simcuda.device():
        train()
    learned = {name: function for name, function in caches().items() if function.cache_info().currsize}
    stale = [
        name
        for name, function in learned.items()
        if name not in HOLDS_FOR_EVERY_DEVICE and function() != function.__wrapped__()
    ]
    assert [] == stale


def test_answers_that_were_remembered_before_do_not_hold_within() -> None:
    """The accelerator's module is ``torch.cuda`` within the simulation, and what it was before afterwards."""
    outside = torch.get_device_module()
    with simcuda.device():
        assert torch.cuda is torch.get_device_module()
    assert outside is torch.get_device_module()


def test_a_default_device_is_given_back() -> None:
    """The default device of before holds again, whatever it was set to within."""
    torch.set_default_device("meta")
    try:
        with simcuda.device():
            torch.set_default_device("cuda")
            assert "cuda" == torch.zeros(1).device.type
        assert "meta" == torch.zeros(1).device.type
    finally:
        torch.set_default_device(None)


@pytest.mark.skipif(torch._C._has_cuda, reason="a build with CUDA looks for a driver instead")
def test_cuda_is_missing_again() -> None:
    """A build without CUDA says so after the simulation, as it did before."""
    with simcuda.device():
        torch.zeros(1, device="cuda")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.zeros(1, device="cuda")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.current_device()
    with pytest.raises(RuntimeError, match="not linked with support for cuda"):
        torch.zeros(1).to("cuda")
