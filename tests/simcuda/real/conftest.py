"""A machine with CUDA, as far as the tests of measuring on real devices ask for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tests.simcuda.real.fake_cuda import FakeCuda

from simcuda.real import device
from simcuda.real.availability import NO_CACHE


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A build for CUDA 13 on a machine with one GPU, as far as ``why_not`` asks; to take parts away from."""
    everything = set(torch.profiler.ProfilerActivity.__members__.values())
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: everything)
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    monkeypatch.delenv(NO_CACHE, raising=False)
    return monkeypatch


@pytest.fixture
def cuda(gpu: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """A fake of CUDA on that machine, with two devices, which the real profiler records."""
    fake = FakeCuda(devices=2)
    fake.install(gpu)
    device._warm_up.cache_clear()
    yield fake
    device._warm_up.cache_clear()
