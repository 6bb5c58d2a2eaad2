"""The profile of a real GPU."""

from __future__ import annotations

from dataclasses import replace

from simcuda.profile import KERNEL_ARGUMENTS_4_KIB, KERNEL_ARGUMENTS_32_KIB, PROFILES
from simcuda.real.profiles import Properties, profile_of

H200 = Properties(
    name="NVIDIA H200",
    capability=(9, 0),
    multiprocessors=132,
    threads_per_multiprocessor=2048,
    memory_bytes=150_000_000_000,
    l2_cache_bytes=60 << 20,
    cublas_workspace_bytes=32 << 20,
)
RTX = Properties(
    name="NVIDIA GeForce RTX 4090",
    capability=(8, 9),
    multiprocessors=128,
    threads_per_multiprocessor=1536,
    memory_bytes=25_000_000_000,
    l2_cache_bytes=72 << 20,
    cublas_workspace_bytes=8_519_680,
)


def test_a_known_gpu_has_the_known_profile() -> None:
    """By name and the major version of CUDA, with all that has been found out about it."""
    assert PROFILES["h200-cuda13"] is profile_of(H200, "13.1")
    assert PROFILES["h200-cuda12"] is profile_of(H200, "12.8")


def test_a_part_of_a_known_gpu_is_another_one() -> None:
    """A slice of a GPU carries the name of the whole, but reductions on fewer multiprocessors differ."""
    part = profile_of(replace(H200, multiprocessors=16), "13.0")
    assert ("nvidia-h200-cuda13", 16) == (part.name, part.multiprocessors)


def test_another_gpu_has_a_profile_of_what_it_says() -> None:
    """Its properties, and the tables of multi-tensor kernels that its version of CUDA compiles."""
    profile = profile_of(RTX, "12.6")
    assert ("nvidia-geforce-rtx-4090-cuda12", "NVIDIA GeForce RTX 4090") == (profile.name, profile.gpu)
    assert ((8, 9), 128, 1536) == (
        profile.capability,
        profile.multiprocessors,
        profile.threads_per_multiprocessor,
    )
    assert (25_000_000_000, 72 << 20) == (profile.memory_bytes, profile.l2_cache_bytes)
    assert ("12.6", KERNEL_ARGUMENTS_4_KIB) == (profile.cuda_version, profile.multi_tensor)
    assert 8_519_680 == profile.cublas_workspace_bytes
    assert KERNEL_ARGUMENTS_32_KIB is profile_of(RTX, "13.0").multi_tensor
