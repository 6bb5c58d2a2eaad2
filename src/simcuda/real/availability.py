"""Whether costs can be counted on a real CUDA device here, and on what."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

import torch

from simcuda import simulation

NO_CACHE = "PYTORCH_NO_CUDA_MEMORY_CACHING"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Environment:
    """What counts on a real device depend on.

    Attributes:
        gpu: Name of the first device, such as ``NVIDIA H200``.
        driver: Version of its driver, such as ``580.65.06``; ``unknown`` where the driver does not tell.
        cuda: Version of CUDA that PyTorch was built for, such as ``13.0``.
        torch: Version of PyTorch with its build, such as ``2.13.0+cu130``.
    """

    gpu: str
    driver: str
    cuda: str
    torch: str


def why_not() -> str | None:
    """Why no real CUDA device can be measured here, in words; None where one can.

    Where there is a device this initialises CUDA: a process forked later could not use it.
    """
    if simulation.active() is not None:
        return "a simulated device is active, which stands in the place of real ones"
    if torch.version.cuda is None:
        kind = "for ROCm" if torch.version.hip else "without CUDA"
        return f"PyTorch {torch.__version__} is a build {kind}"
    return _no_device() or _no_counter()


def environment() -> Environment:
    """The first real device and the software on it; only where ``why_not()`` is None."""
    return Environment(
        gpu=torch.cuda.get_device_name(0),
        driver=_driver_version(),
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
    )


def _no_device() -> str | None:
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]  # has no annotations
    except RuntimeError as error:
        return f"CUDA does not start: {str(error).strip().splitlines()[0]}"
    return None if torch.cuda.device_count() else "there is no CUDA device that PyTorch can use"


def _no_counter() -> str | None:
    """Why what happens on a device could not be seen."""
    seen = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]  # has no annotations
    if torch.profiler.ProfilerActivity.CUDA not in seen:
        return f"the profiler of PyTorch {torch.__version__} does not see CUDA: it is built without CUPTI"
    if (backend := torch.cuda.get_allocator_backend()) != "native":
        return f"the allocator in use, {backend}, does not tell requested bytes: only the native one does"
    if NO_CACHE in os.environ:
        return f"{NO_CACHE} is set, and the allocator counts nothing without its cache"
    return None


def _driver_version() -> str:
    """As NVML tells it, which every driver installs."""
    text = ctypes.create_string_buffer(80)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        answered = nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0
    except (OSError, AttributeError):
        return UNKNOWN
    return text.value.decode() if answered else UNKNOWN
