"""What importing and entering the simulation loads, and what is imported within it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.conftest import Ended

import simcuda

IMPORTS = """
import sys
import simcuda
import torch

assert "torch._dynamo" not in sys.modules, "imported by simcuda"
before = [torch.cuda.Stream]
with simcuda.device():
    layer = torch.nn.Linear(2, 2, device="cuda")
    assert "torch._dynamo" not in sys.modules, "imported by entering or by a first operation"
    # The first optimizer of a process imports it.
    torch.optim.SGD(layer.parameters(), lr=0.1)
    assert torch.cuda.Stream is not before[0]
from torch._dynamo import device_interface
assert device_interface.CudaInterface.Stream is before[0], "bound to a simulated class"
print("fine")
"""

HELPERS = """
import sys
import types
import unittest
import torch
import simcuda

# PyTorch's helpers want it, and only for texts that tests compare.
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
with simcuda.device(2):
    from torch.testing._internal.common_cuda import TEST_MULTIGPU
    from torch.testing._internal.common_device_type import instantiate_device_type_tests
    from torch.testing._internal.common_utils import TestCase

    class TestOn(TestCase):
        def test_it(self, device):
            pass

    instantiate_device_type_tests(TestOn, globals())
print(TEST_MULTIGPU, sorted(name for name in globals() if name.startswith("TestOn")))
"""


@pytest.mark.slow
def test_torch_imports_its_own_modules_outside_the_simulation(torch_alone: Callable[[str], Ended]) -> None:
    """``torch._dynamo`` is loaded only when torch wants it, and then sees nothing of the simulation."""
    assert (0, "fine\n", "") == torch_alone(IMPORTS)


@pytest.mark.slow
def test_torchs_helpers_for_tests_see_the_devices(torch_alone: Callable[[str], Ended]) -> None:
    """They ask at import whether there is a GPU, and make a class of tests for each kind of device."""
    ended = torch_alone(HELPERS)
    # A torch for CUDA warns of a machine that has the compiler and no driver.
    assert (0, "True ['TestOnCPU', 'TestOnCUDA']\n") == ended[:2], ended.err


BEFORE = """
from torch import Generator, Stream, as_tensor, tensor
from torch.cuda import Event, current_stream, mem_get_info
from torch.cuda import Stream as CudaStream
from torch.nn.functional import one_hot

def use():
    assert "cuda" == tensor([1], device="cuda").device.type == as_tensor([1.0], device="cuda").device.type
    assert "cuda" == Generator("cuda").device.type == Stream("cuda").device.type
    assert isinstance(CudaStream(), CudaStream)
    assert current_stream().query()
    Event().record()
    assert mem_get_info()[1] > 0
    return one_hot(tensor([0, 1], device="cuda"), 2)
"""


@pytest.mark.parametrize("imported_first", [True, False])
def test_names_that_were_imported_follow(
    imported_first: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a module has imported from torch by name is simulated too, and is torch's own afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "code_that_imports_names.py").write_text(BEFORE)
    module = importlib.import_module("code_that_imports_names") if imported_first else None
    with simcuda.device() as gpu, gpu.measure() as cost:
        module = module or importlib.import_module("code_that_imports_names")
        module.use()
    # Three tensors of Python data; the classes are known, so that nothing is read.
    assert (3, 3) == (cost.h2d, cost.syncs)
    assert [torch.Generator, torch.Stream, torch.as_tensor, torch.tensor] == [
        *(module.Generator, module.Stream, module.as_tensor, module.tensor)
    ]
    assert (torch.cuda.Stream, torch.cuda.Event) == (module.CudaStream, module.Event)
    assert [torch.cuda.mem_get_info, torch.nn.functional.one_hot] == [module.mem_get_info, module.one_hot]
    monkeypatch.delitem(sys.modules, "code_that_imports_names")
