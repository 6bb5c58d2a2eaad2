"""The device profile of a real GPU: a known one, or one made of what the device says of itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from simcuda.profile import KERNEL_ARGUMENTS_4_KIB, KERNEL_ARGUMENTS_32_KIB, MIB, PROFILES, Profile


@dataclass(frozen=True)
class Properties:
    """What PyTorch says of a device, as far as profiles take it."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    memory_bytes: int
    l2_cache_bytes: int
    cublas_workspace_bytes: int


def properties_of(device: int) -> Properties:
    """The properties of a real device."""
    said = torch.cuda.get_device_properties(device)
    return Properties(
        name=said.name,
        capability=(said.major, said.minor),
        multiprocessors=said.multi_processor_count,
        threads_per_multiprocessor=said.max_threads_per_multi_processor,
        memory_bytes=said.total_memory,
        l2_cache_bytes=said.L2_cache_size,
        cublas_workspace_bytes=_cublas_workspace(said.major),
    )


def profile_of(properties: Properties, cuda_version: str) -> Profile:
    """The profile of a GPU under a build for ``cuda_version``, such as ``12.8``.

    A known profile is taken for a GPU of its name and multiprocessors under the same major version of CUDA.
    """
    major = int(cuda_version.split(".", maxsplit=1)[0])
    for known in PROFILES.values():
        same_gpu = (known.gpu, known.multiprocessors) == (properties.name, properties.multiprocessors)
        if same_gpu and known.cuda_version.split(".")[0] == str(major):
            return known
    return Profile(
        name=f"{re.sub(r'[^a-z0-9]+', '-', properties.name.lower())}-cuda{major}",
        gpu=properties.name,
        capability=properties.capability,
        multiprocessors=properties.multiprocessors,
        threads_per_multiprocessor=properties.threads_per_multiprocessor,
        memory_bytes=properties.memory_bytes,
        l2_cache_bytes=properties.l2_cache_bytes,
        cuda_version=cuda_version,
        multi_tensor=KERNEL_ARGUMENTS_32_KIB if major >= 13 else KERNEL_ARGUMENTS_4_KIB,
        cublas_workspace_bytes=properties.cublas_workspace_bytes,
    )


def _cublas_workspace(major: int) -> int:
    """What PyTorch gives cuBLAS: it tells from 2.13 on; before, it took 32 MiB from Hopper on."""
    if asked := getattr(torch.backends.cuda, "cublas_workspace_size", None):
        return int(asked())
    return 32 * MIB if major >= 9 else 8_519_680
