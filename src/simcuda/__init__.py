"""A simulated CUDA device: runs CUDA code on the CPU, with real values, and counts what it would cost."""

from simcuda.assertions import assert_at_most, assert_no_syncs
from simcuda.costs.call import OpCost, OperationCall
from simcuda.costs.declared import cost
from simcuda.ledger import allowed
from simcuda.measurement import METRICS, Gpu, Measurement, Site
from simcuda.profile import PROFILES, Profile
from simcuda.simulation import SimulatedCuda, device

__all__ = [
    "METRICS",
    "PROFILES",
    "Gpu",
    "Measurement",
    "OpCost",
    "OperationCall",
    "Profile",
    "SimulatedCuda",
    "Site",
    "allowed",
    "assert_at_most",
    "assert_no_syncs",
    "cost",
    "device",
]
