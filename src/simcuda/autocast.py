"""``torch.autocast("cuda")``, which C++ applies to real CUDA tensors only, mirrored to that of the CPU.

Known limitations:
    Which operations run in which type is decided by the lists of the CPU, which differ from CUDA's for some
    reductions and losses. The ledger names autocast as approximate.
"""

from __future__ import annotations

from typing import Any

import torch

from simcuda.ledger import Ledger
from simcuda.patches import Patches


class Autocast:
    """Answers for ``cuda`` from the state of the CPU."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._is_enabled: Any = torch.is_autocast_enabled
        self._set_enabled: Any = torch.set_autocast_enabled
        self._dtype: Any = torch.get_autocast_dtype
        self._set_dtype: Any = torch.set_autocast_dtype
        self._cuda_dtype: torch.dtype = self._dtype("cuda")
        self._cpu_dtype: torch.dtype = self._dtype("cpu")

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        patches.set(
            torch,
            is_autocast_enabled=self.is_enabled,
            set_autocast_enabled=self.set_enabled,
            get_autocast_dtype=self.dtype,
            set_autocast_dtype=self.set_dtype,
        )

    def is_enabled(self, device_type: str = "cuda") -> bool:
        """``torch.is_autocast_enabled``."""
        return bool(self._is_enabled(_mirrored(device_type)))

    def set_enabled(self, *device_type_and_enabled: Any) -> None:
        """``torch.set_autocast_enabled``, with the device type or, for ``cuda``, without."""
        device_type, enabled = ("cuda", *device_type_and_enabled)[-2:]
        if device_type == "cuda" and enabled != self.is_enabled():
            self._swap_cpu_dtype(enabled)
        self._set_enabled(_mirrored(device_type), enabled)

    def dtype(self, device_type: str) -> torch.dtype:
        """``torch.get_autocast_dtype``."""
        return self._cuda_dtype if device_type == "cuda" else self._dtype(device_type)

    def set_dtype(self, device_type: str, dtype: torch.dtype) -> None:
        """``torch.set_autocast_dtype``."""
        if device_type == "cuda":
            self._cuda_dtype = dtype
        if device_type != "cuda" or self.is_enabled():
            self._set_dtype(_mirrored(device_type), dtype)

    def _swap_cpu_dtype(self, enabled: bool) -> None:
        if enabled:
            self._ledger.approximate("autocast")
            self._cpu_dtype = self._dtype("cpu")
        self._set_dtype("cpu", self._cuda_dtype if enabled else self._cpu_dtype)


def _mirrored(device_type: str) -> str:
    return "cpu" if device_type == "cuda" else device_type
