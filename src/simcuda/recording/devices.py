"""The devices on which cases run: real ones, or the simulated."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import torch

import simcuda
from simcuda import real
from simcuda.measurement import Gpu
from simcuda.profile import PROFILES, MultiTensorTables, Profile
from simcuda.recording.case import Case

REAL, SIMULATED = "real", "simulated"


class SimulatedDevices:
    """Fresh simulated devices for each case."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # A recording brings along the profile of a real GPU that this version does not know.
        PROFILES.setdefault(profile.name, profile)

    def environment(self) -> dict[str, Any]:
        """There is no driver, and the version of CUDA is the profile's."""
        profile = self._profile
        return _header(SIMULATED, profile, device=profile.gpu, driver=None, cuda=profile.cuda_version)

    def for_case(self, case: Case) -> AbstractContextManager[Gpu]:
        """The devices and the memory that the case needs."""
        return simcuda.device(case.devices, profile=self._profile.name, capacity=case.memory)

    def is_healthy(self) -> bool:
        """Each case gets a fresh device."""
        return True


class RealDevices:
    """The CUDA devices of this machine; all raise ``CannotCountError`` where nothing can be counted."""

    def environment(self) -> dict[str, Any]:
        """The first device, its driver and the profile that describes it."""
        with real.real_device() as gpu:
            found, profile = real.environment(), gpu.profile
        return _header(REAL, profile, device=found.gpu, driver=found.driver, cuda=found.cuda)

    def for_case(self, case: Case) -> AbstractContextManager[Gpu]:
        """The real devices, with their memory limited where the case asks for that."""
        return real.real_device(case.devices, capacity=case.memory)

    def is_healthy(self) -> bool:
        """Whether this process can continue: after an illegal access CUDA refuses all further calls."""
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True


def profile_from(fields: dict[str, Any]) -> Profile:
    """A profile from a header; this version's own profile of that name is preferred."""
    if known := PROFILES.get(fields["name"]):
        return known
    # JSON has lists where a profile has tuples.
    parts: Any = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in each.items()}
        for each in (fields["multi_tensor"], fields)
    )
    tables, figures = parts
    return Profile(**{**figures, "multi_tensor": MultiTensorTables(**tables)})


def _header(made_by: str, profile: Profile, **device: str | None) -> dict[str, Any]:
    """What the counts depend on, as the header of a recording has it."""
    # Without the name of torch's build: the simulation is the same on every one.
    software = {"torch": torch.__version__.split("+")[0], "python": platform.python_version()}
    return {"made_by": made_by, **device, **software, "profile": asdict(profile)}
