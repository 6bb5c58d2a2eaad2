"""The same counts on a real CUDA device: ``with real_device() as gpu, gpu.measure() as cost``."""

from simcuda.real.availability import Environment, environment, why_not
from simcuda.real.device import CannotCountError, RealCuda, real_device

__all__ = [
    "CannotCountError",
    "Environment",
    "RealCuda",
    "environment",
    "real_device",
    "why_not",
]
