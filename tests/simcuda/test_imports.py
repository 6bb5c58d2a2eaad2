"""What importing and entering the simulation loads, and what is imported within it."""

from __future__ import annotations

import subprocess
import sys

IMPORTS = """
import sys
import simcuda
import torch

assert "torch._dynamo" not in sys.modules, "imported by simcuda"
stream = torch.cuda.Stream
with simcuda.device():
    layer = torch.nn.Linear(2, 2, device="cuda")
    assert "torch._dynamo" not in sys.modules, "imported by entering or by a first operation"
    # The first optimizer of a process imports it.
    torch.optim.SGD(layer.parameters(), lr=0.1)
    assert torch.cuda.Stream is not stream
from torch._dynamo import device_interface
assert device_interface.CudaInterface.Stream is stream, "bound to a simulated class"
print("fine")
"""


def test_torch_imports_its_own_modules_outside_the_simulation() -> None:
    """``torch._dynamo`` is loaded only when torch wants it, and then sees nothing of the simulation."""
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert ("fine\n", "") == (run.stdout, run.stderr)
