"""A simulated CUDA device: CUDA code runs on the CPU, with real values, and all that it costs is counted."""

from simcuda.measurement import Measurement, Site
from simcuda.profile import PROFILES, Profile
from simcuda.simulation import SimulatedCuda, device

__all__ = ["PROFILES", "Measurement", "Profile", "SimulatedCuda", "Site", "device"]
