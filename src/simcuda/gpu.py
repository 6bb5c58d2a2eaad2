"""What simulated and real devices have in common."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from simcuda import simulation
from simcuda.measurement import Measurement
from simcuda.profile import Profile


class Gpu(Protocol):
    """The devices of a machine, simulated or real, as the code that measures sees them."""

    @property
    def profile(self) -> Profile:
        """The figures of the device."""

    def measure(self) -> AbstractContextManager[Measurement]:
        """Count what the code in a block costs; the measurement is final once the block has ended."""

    def live_bytes(self) -> int:
        """Requested bytes that are live now, on all devices together."""


def gpu_at_hand() -> AbstractContextManager[Gpu]:
    """The simulated device that is active, else the real one.

    Raises:
        RuntimeError: There is neither.
    """
    __tracebackhide__ = True  # pytest then points to the line that needs a device
    if simulated := simulation.active():
        return nullcontext(simulated)
    from simcuda import real

    if reason := real.why_not():
        raise RuntimeError(f"there is no device to count on: enter simcuda.device() first ({reason})")
    return real.real_device()
