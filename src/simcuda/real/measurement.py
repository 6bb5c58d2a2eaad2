"""A measurement on real devices: the same as a simulated one, but for what cannot be counted there."""

from __future__ import annotations

from typing import Any

from simcuda.measurement import Measurement

NEVER_COUNTED = ("hazards", "host_peak_bytes")
"""A real device tells neither the order of accesses nor what the host allocates."""


class RealMeasurement(Measurement):
    """What a block cost on real devices; final once the block has ended.

    Reading a metric that is ``not_counted`` raises ``AttributeError``: it is not 0, it is not known.
    """

    not_counted: tuple[str, ...] = NEVER_COUNTED

    def __getattribute__(self, name: str) -> Any:
        """Refuse what was not counted."""
        if name in super().__getattribute__("not_counted"):
            raise AttributeError(f"{name} is not counted on a real device")
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        """All that was counted and is not 0."""
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int) and value}
        known = (f"{name}={value}" for name, value in counts.items() if name not in self.not_counted)
        return f"{type(self).__name__}({', '.join(known)})"
