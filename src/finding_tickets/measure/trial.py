"""One run of one variant at one point, the same way on every meter."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

import simcuda
from finding_tickets.measure.compare import settled
from finding_tickets.measure.measurement import Measurement
from finding_tickets.measure.places import describe, is_out_of_host_memory
from finding_tickets.workload import Point, Workload

Function = Callable[..., Any]


@dataclass(frozen=True)
class Trial:
    """What a run cost and what it returned, on the host; with an ``error`` there is no result."""

    measurement: Measurement
    result: Any
    error: str | None = None


class Meter(Protocol):
    """A way to count what a run costs."""

    name: str
    device: str

    def cannot_run(self, workload: Workload, point: Point) -> str | None:
        """Why this meter cannot run a point; None where it can."""

    def measure(self, workload: Workload, point: Point, function: Function, root: Path) -> Trial:
        """Warm up on other data, then run ``function`` once on fresh data and count; its errors are data."""

    def devices(self, number: int, capacity: int | None = None) -> AbstractContextManager[simcuda.Gpu]:
        """Devices that count what runs within, with so many bytes of memory or all that they have."""


def warm_up(workload: Workload, point: Point, function: Function, device: str) -> None:
    """Run once on data of their own, so that first-use effects are over; how it ends does not matter."""
    inputs = arguments(workload, point, device, workload.seed + 1)
    try:
        workload.read(function(*inputs))
    except Exception:
        return


def arguments(workload: Workload, point: Point, device: str, seed: int) -> tuple[Any, ...]:
    """Fresh arguments, the same for every variant; also what ``build`` draws without its generator is seeded.

    Raises:
        TypeError: ``build`` returned no tuple.
    """
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    built = workload.build(point, device, torch.Generator().manual_seed(seed))
    if not isinstance(built, tuple):
        raise TypeError(f"build must return a tuple of arguments, not {type(built).__name__}")
    return built


def attempt(
    workload: Workload, function: Function, inputs: tuple[Any, ...], root: Path
) -> tuple[Any, str | None]:
    """What the caller reads of the result, or the error in words; no traceback keeps tensors alive.

    The result is looked at all over: work that waits for that belongs to the run.
    """
    try:
        return settled(workload.read(function(*inputs))), None
    except Exception as error:
        if is_out_of_host_memory(error):
            raise
        return None, describe(error, root)


@contextmanager
def steady_state() -> Iterator[None]:
    """No garbage collection within, and settings that a variant changes are put back for the next one.

    What cycles keep alive stays alive, so that peaks do not depend on when the collector runs.
    """
    dtype, grad, threads = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.set_num_threads(threads)
