"""Measuring on real CUDA devices, in the words of the simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from simcuda.measurement import Measurement
from simcuda.profile import Profile
from simcuda.real.availability import why_not
from simcuda.real.profiles import profile_of, properties_of


class CannotCountError(RuntimeError):
    """Costs cannot be counted on a real device, or what was counted is not complete."""


class RealCuda:
    """The real devices, as the code that measures sees them; ``real_device`` makes it."""

    @property
    def profile(self) -> Profile:
        """The profile that describes the first device, under which a simulation is comparable."""
        return profile_of(properties_of(0), str(torch.version.cuda))

    @contextmanager
    def measure(self) -> Iterator[Measurement]:
        """Count what the code in this block costs; the measurement is final once the block has ended.

        Raises:
            CannotCountError: Another profiler runs, or what was counted is not complete.
        """
        raise CannotCountError("nothing is counted on real devices yet")
        yield Measurement()

    def live_bytes(self) -> int:
        """Requested bytes that are live now, on all devices together."""
        devices = range(torch.cuda.device_count())
        return sum(torch.cuda.memory_stats(at).get("requested_bytes.all.current", 0) for at in devices)


@contextmanager
def real_device(count: int = 1) -> Iterator[RealCuda]:
    """Measure on real devices within this block.

    Args:
        count: How many devices the code needs.

    Raises:
        CannotCountError: ``why_not()`` says why, or there are fewer devices.
    """
    if reason := why_not():
        raise CannotCountError(reason)
    if (there := torch.cuda.device_count()) < count:
        raise CannotCountError(f"{count} devices are needed, and there are {there}")
    yield RealCuda()
