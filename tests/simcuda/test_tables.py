"""Libraries find functions of torch in their tables, filled before or within a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

import simcuda

CODE = """
import torch
KNOWN = {torch.empty_like: "empty_like", torch.max: "max", torch.sum: "sum"}
KNOWN[torch.Tensor.to] = "to"
NAMED = {torch.tensor, torch.empty_like, torch.sum, torch.Tensor.to, torch.Tensor.detach}
class Wrapper:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return KNOWN[function]
"""


@pytest.fixture
def library() -> Iterator[Any]:
    """A module outside torch whose class looks up in a table what it can do; it is not loaded yet."""
    module = ModuleType("a_library")
    yield module
    del sys.modules["a_library"]


def load(module: ModuleType) -> None:
    """Run the module, as an import does."""
    sys.modules[module.__name__] = module
    exec(CODE, vars(module))  # noqa: S102 - the code is above


def answers(module: Any) -> list[Any]:
    """What the library answers for each of its functions, where it finds them."""
    wrapper = module.Wrapper()
    functions = (torch.tensor, torch.empty_like, torch.sum, torch.Tensor.to, torch.Tensor.detach)
    assert all(function in module.NAMED for function in functions)
    found = [function(wrapper) for function in (torch.empty_like, torch.max, torch.sum)]
    # A subclass of Tensor is asked for the method of its class.
    return [*found, module.KNOWN[torch.Tensor.to]]


@pytest.mark.parametrize("is_loaded_before", [True, False])
def test_a_library_finds_functions_within_and_after_a_simulation(
    library: Any, is_loaded_before: bool
) -> None:
    """Redirected functions have another hash, methods none: tables find both, and afterwards each once."""
    if is_loaded_before:
        load(library)
    with simcuda.device():
        if not is_loaded_before:
            load(library)
        assert ["empty_like", "max", "sum", "to"] == answers(library)
        assert "cuda:0" == str(torch.empty_like(torch.ones(2, device=0)).device)
    assert ["empty_like", "max", "sum", "to"] == answers(library)
    assert (4, 5) == (len(library.KNOWN), len(library.NAMED))


def test_a_default_device_is_still_taken_after_a_simulation() -> None:
    """Torch's own table of what takes it is found again."""
    for _ in range(2):
        with simcuda.device(), torch.device("cuda"):
            assert {"cuda"} == {each.device.type for each in (torch.tensor(1), torch.zeros(1), torch.rand(2))}
        with torch.device("meta"):
            assert {"meta"} == {each.device.type for each in (torch.tensor(1), torch.zeros(1), torch.rand(2))}
