"""Why a real device cannot be measured, in words that tell a user what is missing."""

from __future__ import annotations

from typing import Any

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


def fail() -> None:
    """Start no CUDA, as without a driver."""
    raise RuntimeError("Found no NVIDIA driver on your system. Please check that\nmore")


MISSING: dict[str, tuple[Any, str, Any]] = {
    "is a build without CUDA": (torch.version, "cuda", None),
    # It calls its devices ``cuda`` as well, but its counts are other ones.
    "is a build for ROCm": (torch.version, "hip", "6.4"),
    # In PyTorch's own words, the first line of them.
    "CUDA does not start: Found no NVIDIA driver on your system. Please check that": (
        *(torch.cuda, "init", fail),
    ),
    # All of them may be hidden by CUDA_VISIBLE_DEVICES.
    "there is no CUDA device that PyTorch can use": (torch.cuda, "device_count", lambda: 0),
    # The totals would be 0.
    "without CUPTI": (torch.profiler, "supported_activities", lambda: {torch.profiler.ProfilerActivity.CPU}),
    # CUDA's own allocator does not tell what was requested.
    "cudaMallocAsync": (torch.cuda, "get_allocator_backend", lambda: "cudaMallocAsync"),
}


@pytest.mark.parametrize(("reason", "missing"), MISSING.items(), ids=MISSING)
def test_what_is_missing_is_told(gpu: pytest.MonkeyPatch, reason: str, missing: tuple[Any, str, Any]) -> None:
    """Each by itself."""
    if reason.endswith("ROCm"):
        gpu.setattr(torch.version, "cuda", None)
    gpu.setattr(*missing)
    assert reason in str(why_not())


def test_without_its_cache_the_allocator_tells_nothing_either(gpu: pytest.MonkeyPatch) -> None:
    """A variable of the environment switches it off."""
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
