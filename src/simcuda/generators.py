"""``torch.Generator`` for simulated devices: one of the host that answers with a device of its own."""

from __future__ import annotations

from typing import Any

import torch

_Generator = torch.Generator
_make: Any = _Generator.__new__


class _AnyGenerator(type(_Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator)


class SimulatedGenerator(_Generator, metaclass=_AnyGenerator):
    """A generator on any device; its numbers are those of a CPU generator with the same seed."""

    _device: torch.device

    def __new__(cls, device: Any = "cpu") -> SimulatedGenerator:
        """Make a generator for ``device``."""
        generator: SimulatedGenerator = _make(cls, device="cpu")
        generator._device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        return generator

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device it was made for."""
        return self._device
