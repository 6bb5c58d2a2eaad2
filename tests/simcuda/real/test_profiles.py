"""The profile of a real GPU."""

from __future__ import annotations

from types import SimpleNamespace

from simcuda.profile import KERNEL_ARGUMENTS_4_KIB, KERNEL_ARGUMENTS_32_KIB, PROFILES
from simcuda.real.availability import profile_of

WORKSPACE = 8_519_680

H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    total_memory=150_000_000_000,
    L2_cache_size=60 << 20,
)
RTX = SimpleNamespace(
    name="NVIDIA GeForce RTX 4090",
    major=8,
    minor=9,
    multi_processor_count=128,
    max_threads_per_multi_processor=1536,
    total_memory=25_000_000_000,
    L2_cache_size=72 << 20,
)


def test_a_known_gpu_has_the_known_profile() -> None:
    """By name and the major version of CUDA, with all that has been found out about it."""
    assert PROFILES["h200-cuda13"] is profile_of(H200, "2.13.0+cu131", "13.1", WORKSPACE)
    assert PROFILES["h200-cuda12"] is profile_of(H200, "2.11.0", "12.8", WORKSPACE)


def test_a_part_of_a_known_gpu_is_another_one() -> None:
    """A slice of a GPU carries the name of the whole, but reductions on fewer multiprocessors differ."""
    slice_of_it = SimpleNamespace(**{**vars(H200), "multi_processor_count": 16})
    part = profile_of(slice_of_it, "2.13.0", "13.0", WORKSPACE)
    assert ("nvidia-h200-cuda13", 16) == (part.name, part.multiprocessors)


def test_another_gpu_has_a_profile_of_what_it_says() -> None:
    """Its properties, and the tables of multi-tensor kernels that its version of CUDA compiles."""
    profile = profile_of(RTX, "2.13.0", "12.6", WORKSPACE)
    assert ("nvidia-geforce-rtx-4090-cuda12", "NVIDIA GeForce RTX 4090") == (profile.name, profile.gpu)
    assert ((8, 9), 128, 1536) == (
        profile.capability,
        profile.multiprocessors,
        profile.threads_per_multiprocessor,
    )
    assert (25_000_000_000, 72 << 20) == (profile.memory_bytes, profile.l2_cache_bytes)
    assert ("12.6", KERNEL_ARGUMENTS_4_KIB) == (profile.cuda_version, profile.multi_tensor)
    assert WORKSPACE == profile.cublas_workspace_bytes
    assert KERNEL_ARGUMENTS_32_KIB is profile_of(RTX, "2.13.0", "13.0", WORKSPACE).multi_tensor


def test_torch_2_11_has_small_tables_under_cuda_13_too() -> None:
    """An H100 with 2.11 launched 5 kernels for 500 tensors, as 110 fit in one: ``foreach_of_500_tensors``."""
    assert KERNEL_ARGUMENTS_4_KIB is profile_of(RTX, "2.11.0+cu130", "13.0", WORKSPACE).multi_tensor
    assert KERNEL_ARGUMENTS_32_KIB is profile_of(RTX, "2.12.0+cu130", "13.0", WORKSPACE).multi_tensor
    # The known profile of that GPU has the large ones.
    assert "nvidia-h200-cuda13" == profile_of(H200, "2.11.0+cu130", "13.0", WORKSPACE).name
