"""Device profiles: the facts of a GPU and of a CUDA build on which exact counts depend."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

MIB = 1 << 20
GPU_NAME = "SIMCUDA_GPU_NAME"
"""The environment variable that gives the simulated GPU another name, to see that no count depends on it."""


@dataclass(frozen=True)
class MultiTensorTables:
    """The capacity of one multi-tensor kernel, by depth: the number of tensor lists it walks side by side.

    Attributes:
        tensors: Most tensors of one launch, for depth 1 to 5.
        tensors_with_scalars: The same if every tensor has its own scalar.
        blocks: Most chunks of one launch, at any depth.
    """

    tensors: tuple[int, int, int, int, int]
    tensors_with_scalars: tuple[int, int, int, int, int]
    blocks: int


KERNEL_ARGUMENTS_4_KIB = MultiTensorTables(
    (110, 64, 48, 36, 30), (96, 64, 48, 36, 30), blocks=320
)
"""Builds for CUDA 12, and PyTorch until 2.11: a kernel's arguments fit in 4 KiB."""

KERNEL_ARGUMENTS_32_KIB = MultiTensorTables(
    (770, 448, 336, 252, 210), (672, 448, 336, 252, 210), blocks=2240
)
"""Builds for CUDA 13 from PyTorch 2.12 on: a kernel's arguments fit in 32 KiB."""


# Compared by identity: one profile is hashed at every reduction, to look up what it costs.
@dataclass(frozen=True, eq=False)
class Profile:
    """One GPU under one CUDA build of PyTorch.

    Attributes:
        name: The profile's own name, as evidence records it.
        gpu: The name that ``torch.cuda.get_device_name`` returns.
        capability: Compute capability, major and minor.
        multiprocessors: Streaming multiprocessors.
        threads_per_multiprocessor: Most resident threads of one of them.
        memory_bytes: Total device memory.
        l2_cache_bytes: Second-level cache.
        cuda_version: Version of the CUDA runtime the build is for.
        multi_tensor: Limits of multi-tensor kernels in that build.
        cublas_workspace_bytes: What cuBLAS keeps per handle and stream after its first use.
    """

    name: str
    gpu: str
    capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    memory_bytes: int
    l2_cache_bytes: int
    cuda_version: str
    multi_tensor: MultiTensorTables
    cublas_workspace_bytes: int


_H200 = Profile(
    name="h200-cuda13",
    gpu="NVIDIA H200",
    capability=(9, 0),
    multiprocessors=132,
    threads_per_multiprocessor=2048,
    memory_bytes=143_156 * MIB,
    l2_cache_bytes=60 * MIB,
    cuda_version="13.0",
    multi_tensor=KERNEL_ARGUMENTS_32_KIB,
    cublas_workspace_bytes=32 * MIB,
)
_A100 = Profile(
    name="a100-cuda12",
    gpu="NVIDIA A100-SXM4-80GB",
    capability=(8, 0),
    multiprocessors=108,
    threads_per_multiprocessor=2048,
    memory_bytes=81_050 * MIB,
    l2_cache_bytes=40 * MIB,
    cuda_version="12.8",
    multi_tensor=KERNEL_ARGUMENTS_4_KIB,
    cublas_workspace_bytes=8_519_680,
)
# The same GPU: what differs is what the build compiled for its kernels' arguments.
_H200_CUDA12 = replace(
    _H200, name="h200-cuda12", cuda_version="12.8", multi_tensor=KERNEL_ARGUMENTS_4_KIB
)


def workspace_bytes(profile: Profile) -> int:
    """The workspace of cuBLAS in PyTorch, unless ``CUBLAS_WORKSPACE_CONFIG`` says otherwise.

    Source: ATen/cuda/CublasHandlePool.cpp. cuBLASLt uses the same memory, by default.
    """
    chosen = re.findall(
        ":([0-9]+):([0-9]+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", "")
    )
    if not chosen:
        return profile.cublas_workspace_bytes
    return sum(1024 * int(kib) * int(count) for kib, count in chosen)


PROFILES = {profile.name: profile for profile in (_H200, _H200_CUDA12, _A100)}
"""Every profile by its name."""

DEFAULT_PROFILE = "h200-cuda13"
