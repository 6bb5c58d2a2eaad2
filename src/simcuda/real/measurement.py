"""A measurement on real devices: the same as a simulated one, but for what cannot be counted there."""

from __future__ import annotations

from typing import Any

from simcuda.measurement import METRICS, Measurement

NEVER_COUNTED = ("hazards", "host_peak_bytes")
"""A real device tells neither the order of accesses nor what the host allocates."""


class RealMeasurement(Measurement):
    """What a block cost on real devices; final once the block has ended.

    What is ``not_counted`` is not 0, it is not known.
    """

    _not_counted: tuple[str, ...] = NEVER_COUNTED

    @property
    def not_counted(self) -> tuple[str, ...]:
        """Metrics that these devices do not tell: reading one raises ``AttributeError``."""
        return self._not_counted

    def __getattribute__(self, name: str) -> Any:
        """Refuse what was not counted."""
        if name in super().__getattribute__("_not_counted"):
            raise AttributeError(f"{name} is not counted on a real device")
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        """All that was counted and is not 0."""
        counts = {name: getattr(self, name, None) for name in METRICS}
        counted = ", ".join(f"{name}={count}" for name, count in counts.items() if count)
        return f"{type(self).__name__}({counted})"
