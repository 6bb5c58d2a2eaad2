"""Find out if costs can be counted on a real CUDA device here, and describe the device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import torch

from simcuda import simulation
from simcuda.profile import (
    KERNEL_ARGUMENTS_4_KIB,
    KERNEL_ARGUMENTS_32_KIB,
    PROFILES,
    Profile,
)

NO_CACHE = "PYTORCH_NO_CUDA_MEMORY_CACHING"


@dataclass(frozen=True)
class Environment:
    """The environment that counts on a real device depend on.

    Attributes:
        gpu: Name of the first device, such as ``NVIDIA H200``.
        cuda: Version of CUDA that PyTorch was built for, such as ``13.0``.
        torch: Version of PyTorch with its build, such as ``2.13.0+cu130``.
    """

    gpu: str
    cuda: str
    torch: str


def why_not() -> str | None:
    """Return why no real CUDA device can be measured here; None if one can.

    Where there is a device this initialises CUDA: a process forked later could not use it.
    """
    if simulation.active() is not None:
        return "a simulated device is active and hides the real ones"
    version = torch.__version__
    if torch.version.cuda is None:
        return f"PyTorch {version} is a build {'for ROCm' if torch.version.hip else 'without CUDA'}"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]  # has no annotations
    except RuntimeError as error:
        return f"CUDA does not start: {str(error).strip().splitlines()[0]}"
    if not torch.cuda.device_count():
        return "there is no CUDA device that PyTorch can use"
    # The rest checks what observes the device: profiler and allocator.
    seen = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]  # has no annotations
    if torch.profiler.ProfilerActivity.CUDA not in seen:
        return f"the profiler of PyTorch {version} does not see CUDA: it is built without CUPTI"
    if (backend := torch.cuda.get_allocator_backend()) != "native":
        return f"the allocator in use, {backend}, does not report requested bytes: only the native one does"
    if NO_CACHE in os.environ:
        return f"{NO_CACHE} is set, and the allocator counts nothing without its cache"
    return None


def environment() -> Environment:
    """The first real device and the software on it; only where ``why_not()`` is None."""
    return Environment(
        gpu=torch.cuda.get_device_name(0),
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
    )


def profile_of(
    properties: Any, torch_version: str, cuda_version: str, cublas_workspace_bytes: int
) -> Profile:
    """Return the profile of a GPU under a build such as ``2.13.0`` for ``12.8``.

    A known profile is taken for a GPU of its name and multiprocessors under the same major version of CUDA,
    if that version of PyTorch compiled the same tables of multi-tensor kernels; else it is made of what the
    device says of itself.
    """
    major = int(cuda_version.split(".", maxsplit=1)[0])
    of_torch = tuple(int(number) for number in torch_version.split(".")[:2])
    # Source: ATen/native/cuda/MultiTensorApply.cuh of these versions.
    tables = (
        KERNEL_ARGUMENTS_32_KIB
        if major >= 13 and of_torch >= (2, 12)
        else KERNEL_ARGUMENTS_4_KIB
    )
    for known in PROFILES.values():
        same_gpu = (known.gpu, known.multiprocessors) == (
            properties.name,
            properties.multi_processor_count,
        )
        same_build = (
            known.cuda_version.split(".")[0] == str(major)
            and known.multi_tensor == tables
        )
        if same_gpu and same_build:
            return known
    return Profile(
        name=f"{re.sub(r'[^a-z0-9]+', '-', properties.name.lower())}-cuda{major}",
        gpu=properties.name,
        capability=(properties.major, properties.minor),
        multiprocessors=properties.multi_processor_count,
        threads_per_multiprocessor=properties.max_threads_per_multi_processor,
        memory_bytes=properties.total_memory,
        l2_cache_bytes=properties.L2_cache_size,
        cuda_version=cuda_version,
        multi_tensor=tables,
        cublas_workspace_bytes=cublas_workspace_bytes,
    )
