"""Choose the meter that a verification asks for."""

from __future__ import annotations

from contextlib import suppress

from finding_tickets.measure.report import METERS, CannotMeasureError
from finding_tickets.measure.trial import Meter


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
    from finding_tickets.measure.simulated import SimulatedMeter

    return SimulatedMeter()


def took(name: str) -> str:
    """The name of the meter that ``choose`` takes; for a process of its own, since it may start CUDA."""
    return choose(name).name


def _real() -> Meter:
    from finding_tickets.measure.cuda import CudaMeter

    return CudaMeter()
