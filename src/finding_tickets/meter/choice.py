"""Choose the meter that a verification asks for."""

from __future__ import annotations

from contextlib import suppress

from finding_tickets.meter.report import METERS, CannotMeasureError
from finding_tickets.meter.trial import Meter


def choose(name: str) -> Meter:
    """The meter called ``name``; ``auto`` is a real GPU where one is usable, else the simulated device.

    Raises:
        CannotMeasureError: The meter cannot measure on this machine, or there is none of that name.
    """
    if name not in METERS:
        raise CannotMeasureError(f"no meter is called {name!r}: one of {', '.join(METERS)}")
    if name == "cuda":
        return _real()
    if name == "auto":
        with suppress(CannotMeasureError):
            return _real()
    from finding_tickets.meter.simulated import SimulatedMeter

    return SimulatedMeter()


def took(name: str) -> str:
    """The name of the meter that ``choose`` takes; for a process of its own, since it may start CUDA."""
    return choose(name).name


def _real() -> Meter:
    from finding_tickets.meter.cuda import CudaMeter

    return CudaMeter()
