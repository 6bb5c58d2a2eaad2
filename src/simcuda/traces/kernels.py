"""Whose kernel it is, by its name."""

from __future__ import annotations

OF_ATEN = (
    "at::",
    "(anonymous namespace)::",
    "at_cuda_detail::",
    "c10::",
    "cub::",
    "cunn_",
    "multi_tensor_apply_kernel",
    "thrust::",
)
"""How names of ATen's kernels begin, those of CUB and Thrust compiled into it among them.

All others are of libraries (cuBLAS, cuDNN, CUTLASS, NCCL, flash attention) or somebody's own.
"""


def is_of_aten(kernel: str) -> bool:
    """Whether ATen launches this kernel itself, in a number that follows from the arguments."""
    return kernel.removeprefix("void ").startswith(OF_ATEN)
