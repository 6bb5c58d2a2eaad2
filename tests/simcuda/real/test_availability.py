"""Why a real device cannot be measured, in words that tell a user what is missing."""

from __future__ import annotations

import pytest
import torch

import simcuda
from simcuda import simulation
from simcuda.real import CannotCountError, real_device, why_not
from simcuda.real.availability import NO_CACHE


def test_nothing_stands_in_the_way(gpu: pytest.MonkeyPatch) -> None:
    """With a CUDA build, a driver, a device, CUPTI and PyTorch's allocator."""
    del gpu
    assert why_not() is None


def test_a_build_without_cuda(gpu: pytest.MonkeyPatch) -> None:
    """The version says which build it is."""
    gpu.setattr(torch.version, "cuda", None)
    assert f"PyTorch {torch.__version__} is a build without CUDA" == why_not()


def test_a_build_for_rocm(gpu: pytest.MonkeyPatch) -> None:
    """It calls its devices ``cuda`` as well, but its counts are other ones."""
    gpu.setattr(torch.version, "cuda", None)
    gpu.setattr(torch.version, "hip", "6.4")
    assert f"PyTorch {torch.__version__} is a build for ROCm" == why_not()


def test_a_missing_driver(gpu: pytest.MonkeyPatch) -> None:
    """In PyTorch's own words, the first line of them."""

    def fail() -> None:
        raise RuntimeError("Found no NVIDIA driver on your system. Please check that\nmore")

    gpu.setattr(torch.cuda, "init", fail)
    reason = "CUDA does not start: Found no NVIDIA driver on your system. Please check that"
    assert reason == why_not()


def test_no_device(gpu: pytest.MonkeyPatch) -> None:
    """All of them may be hidden by ``CUDA_VISIBLE_DEVICES``."""
    gpu.setattr(torch.cuda, "device_count", lambda: 0)
    assert "there is no CUDA device that PyTorch can use" == why_not()


def test_a_profiler_that_does_not_see_cuda(gpu: pytest.MonkeyPatch) -> None:
    """Without CUPTI the totals would be 0."""
    gpu.setattr(torch.profiler, "supported_activities", lambda: {torch.profiler.ProfilerActivity.CPU})
    assert "without CUPTI" in str(why_not())


def test_another_allocator(gpu: pytest.MonkeyPatch) -> None:
    """CUDA's own allocator does not tell what was requested, nor does PyTorch's without its cache."""
    gpu.setattr(torch.cuda, "get_allocator_backend", lambda: "cudaMallocAsync")
    assert "cudaMallocAsync" in str(why_not())
    gpu.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    gpu.setenv(NO_CACHE, "1")
    assert NO_CACHE in str(why_not())


@pytest.mark.skipif(bool(simulation.why_not_with_this_torch()), reason="no device is simulated")
def test_a_simulated_device_is_no_real_one(gpu: pytest.MonkeyPatch) -> None:
    """Within a simulation torch answers for the simulated device."""
    del gpu
    with simcuda.device():
        assert "a simulated device is active" in str(why_not())


def test_measuring_says_why_not(gpu: pytest.MonkeyPatch) -> None:
    """Whoever asks for the device all the same gets the reason as an error."""
    gpu.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(CannotCountError, match="there is no CUDA device"), real_device():
        pytest.fail("it was entered")


def test_too_few_devices(gpu: pytest.MonkeyPatch) -> None:
    """The numbers wanted and there are told."""
    del gpu
    with (
        pytest.raises(CannotCountError, match="2 devices are needed, and this machine has 1"),
        real_device(2),
    ):
        pytest.fail("it was entered")
