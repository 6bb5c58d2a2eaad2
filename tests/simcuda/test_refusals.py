"""What a simulated device cannot run is refused in one clear sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device."""
    with simcuda.device() as simulated:
        yield simulated


CODE = {
    "torch.compile(layer)": "compile outside simcuda.device()",
    "torch.cuda.CUDAGraph()": "run the captured code as it is",
    "torch.cuda.make_graphed_callables(layer, (x,))": "run the captured code as it is",
    "torch.nn.DataParallel(layer)": "call the module itself, on one device",
    "torch.profiler.profile(activities=[cuda]).start()": r"activities=\[ProfilerActivity.CPU\]",
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("code", "advice"), CODE.items(), ids=CODE)
def test_a_refusal_says_what_to_do_instead(code: str, advice: str) -> None:
    """The error names what does not run, and what does."""
    names = {
        "torch": torch,
        "layer": torch.nn.Linear(2, 2, device="cuda"),
        "x": torch.ones(1, 2, device="cuda"),
        "cuda": torch.profiler.ProfilerActivity.CUDA,
    }
    with pytest.raises(RuntimeError, match=f"does not run on a simulated CUDA device; .*{advice}"):
        eval(code, names)  # noqa: S307 - the code is above


@pytest.mark.usefixtures("gpu")
def test_the_host_can_be_profiled() -> None:
    """The CPU's profiler sees the operations."""
    x = torch.ones(2, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        x.exp()
    assert "aten::exp" in {event.key for event in profile.key_averages()}


def test_everything_is_back_after_the_simulation() -> None:
    """Nothing stays refused outside."""
    before = (torch.compile, torch.nn.DataParallel.__init__, torch.cuda.graphs.graph.__init__)
    with simcuda.device():
        pass
    assert before == (torch.compile, torch.nn.DataParallel.__init__, torch.cuda.graphs.graph.__init__)


@pytest.mark.usefixtures("gpu")
def test_cudnn_is_there() -> None:
    """Code that asks for cuDNN finds it, in a version that comes with CUDA 13."""
    # A version is major x 10000 + minor x 100 + patch; CUDA 13 needs cuDNN 9.12.
    cudnn: Any = torch.backends.cudnn  # torch has no annotations here
    version = cudnn.version()
    assert cudnn.is_available()
    assert version is not None
    assert 91_200 <= version < 100_000
