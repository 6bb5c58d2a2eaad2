"""Count one run of a variant on a CUDA device, by the same steps whether it is simulated or real."""

from __future__ import annotations

import gc
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

import simcuda
from finding_tickets.claims.laws import CountedRun, Place
from finding_tickets.measure.results import plain, tensors_on_host, to_host
from finding_tickets.measure.state import unpatched
from finding_tickets.measure.tasks import (
    METERS,
    SIMULATED_DEVICE,
    At,
    CannotMeasureError,
    describe,
    is_out_of_host_memory,
    portable,
)
from finding_tickets.measure.workloads import Point, Workload
from simcuda import real
from simcuda.costs.declared import MARK
from simcuda.ledger import ChangedCountsError, operations_of
from simcuda.simulation import why_not_with_this_torch
from simcuda.torch_api.compiling import Compiling

Function = Callable[..., Any]
# The reason of a region, and a place in it.
AllowedPlace = tuple[str, str, int, str, str]
DEVICE = "cuda"
# The metrics that are told by operation, the heaviest first: what counts in the simulation, and which
# metrics of recordings confirm it.
OPERATION_METRICS = {
    "drains": (("drains",), ("waits",)),
    "syncs": (("stream_syncs", "event_syncs", "device_syncs"), ("waits",)),
    "implicit_syncs": (("implicit_syncs",), ()),
    **{name: ((name,), ("copies", "bytes")) for name in ("d2h", "h2d", "d2d")},
    "p2p": (("p2p",), ()),
    "launches": (("aten_launches", "library_launches"), ("launches",)),
}


@dataclass(frozen=True)
class VariantRun(CountedRun):
    """The cost of one variant at one point, and its result on the host; no result with an ``error``.

    ``arguments`` are their tensors as the variant left them, by name.
    """

    result: Any = None
    arguments: Mapping[str, torch.Tensor] = field(default_factory=dict)
    # What regions set apart, with the reason in front; everything else includes it.
    allowed: Mapping[AllowedPlace, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        counted: simcuda.Measurement,
        retained: int,
        root: Path,
        at: At,
        error: str | None,
    ) -> VariantRun:
        """A run from what was counted and ``retained`` bytes; sites are named relative to ``root``."""
        # A metric that the device cannot count has no entry: 0 would be a count.
        missing = {*counted.not_counted, "retained_bytes"}
        metrics = {
            name: getattr(counted, name)
            for name in simcuda.METRICS
            if name not in missing
        }
        sites, allowed = Counter[Place](), Counter[AllowedPlace]()
        for site in counted.sites:
            sites[portable(site.file, root), site.line, site.function, site.what] += (
                site.count
            )
        for reason, site in (
            (reason, each)
            for reason, of_it in counted.allowed.items()
            for each in of_it
        ):
            allowed[
                reason, portable(site.file, root), site.line, site.function, site.what
            ] += site.count
        return cls(
            at=at,
            metrics={
                **metrics,
                "retained_bytes": retained,
                "raised": int(error is not None),
            },
            sites=dict(sites),
            unknown=tuple(counted.unknown),
            approximate=tuple(counted.approximate),
            ranges=counted.ranges,
            error=error,
            operations=operations_of(counted),
            allowed=dict(allowed),
        )


def operation_costs(run: CountedRun) -> list[dict[str, Any]]:
    """Return the fields of an ``OperationCost`` for each operation that waited, copied or launched.

    The heaviest is first. What no operation did, such as an explicit wait, comes last.
    """
    if not run.operations:
        return []
    # Reads the rules of all operations, which only this needs.
    from simcuda.basis import DECLARED, MODELLED, READ, UNKNOWN, confirmations

    declared = {each.partition(MARK)[0] for each in run.approximate if MARK in each}
    found, left = [], {metric: run.metrics[metric] for metric in OPERATION_METRICS}
    for name, counts in run.operations.items():
        costs = {
            metric: sum(counts.get(what, 0) for what in counted)
            for metric, (counted, _) in OPERATION_METRICS.items()
        }
        left = {metric: number - costs[metric] for metric, number in left.items()}
        # A recording of launches confirms no wait.
        recorded = {
            each
            for metric in costs
            if costs[metric]
            for each in OPERATION_METRICS[metric][1]
        }
        cost = (
            UNKNOWN
            if name in run.unknown
            else MODELLED
            if name in run.approximate
            else READ
        )
        cost = DECLARED if declared & {name, name.rpartition(".")[0]} else cost
        found.append((name, costs, ", ".join([cost, *confirmations(name, recorded)])))
    found.sort(key=lambda each: [-number for number in each[1].values()])
    found.append(
        ("no operation", left, "a call that waits, such as torch.cuda.synchronize")
    )
    return [
        {
            "operation": name,
            "costs": {metric: n for metric, n in costs.items() if n > 0},
            "rests_on": text,
        }
        for name, costs, text in found
        if any(number > 0 for number in costs.values())
    ]


class Meter:
    """A way to count what a run costs."""

    name: str
    # Evidence names its environment by this.
    device: str

    def cannot_run(self, workload: Workload, point: Point) -> str | None:  # noqa: ARG002 - for GPUs
        """Return why this meter cannot run a point; None if it can. The simulated device always can."""
        return None

    def devices(
        self, number: int, capacity: int | None = None
    ) -> AbstractContextManager[simcuda.Gpu]:
        """A context with devices that count; ``capacity`` limits the memory of each, in bytes."""
        raise NotImplementedError

    def devices_for(
        self, workload: Workload, point: Point
    ) -> AbstractContextManager[simcuda.Gpu]:
        """The devices that a workload wants at a point; at least one."""
        return self.devices(max(1, workload.devices(point)), workload.memory(point))

    def measure(
        self, workload: Workload, point: Point, function: Function, root: Path
    ) -> VariantRun:
        """Warm up on other data, then run ``function`` once on fresh data and count; its errors are data.

        Raises ``CannotMeasureError`` if the run replaces parts of torch or of the meter.
        """
        with steady_state(), self.devices_for(workload, point) as gpu, unpatched():
            warm_up(workload, point, function, DEVICE)
            inputs = arguments(workload, point, DEVICE, workload.seed)
            # The arguments are live already: only what the run itself leaves behind is retained.
            before = gpu.live_bytes()
            try:
                with gpu.measure() as counted:
                    result, error = attempt(workload, function, inputs, root)
            except ChangedCountsError as changed:
                raise CannotMeasureError(str(changed)) from None
            # Results are compared on the host. What is still on the device without them, the code has kept.
            on_host = to_host(result)
            del result
            retained = gpu.live_bytes() - before
            run = VariantRun.of(counted, retained, root, dict(point), error)
            return replace(run, result=on_host, arguments=tensors_on_host(inputs))


class OpenDevice(Meter):
    """Counts on a device that another meter has opened: the code under test has tensors there."""

    def __init__(self, meter: Meter, gpu: simcuda.Gpu) -> None:
        self.name, self.device, self._gpu = meter.name, meter.device, gpu

    def devices(
        self,
        number: int,  # noqa: ARG002 - it is open
        capacity: int | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[simcuda.Gpu]:
        """The open device, which stays open."""
        return nullcontext(self._gpu)


@dataclass(frozen=True)
class SimulatedMeter(Meter):
    """Every run has a simulated device of its own, with the memory that the workload asks for."""

    name = "simulated"
    device: str = SIMULATED_DEVICE
    compiling: Compiling = "eager"

    def __post_init__(self) -> None:
        if reason := why_not_with_this_torch():
            raise CannotMeasureError(reason)

    def devices(
        self, number: int, capacity: int | None = None
    ) -> AbstractContextManager[simcuda.Gpu]:
        """Simulated devices, by default with all the memory of their profile."""
        return simcuda.device(
            number, profile=self.device, capacity=capacity, compile=self.compiling
        )


class CudaMeter(Meter):
    """Every run is on the GPUs of this machine, and CUPTI counts; raises if it cannot count here."""

    name = "cuda"

    def __init__(self) -> None:
        try:
            # CUDA may work and counting fail, for example without permission to profile.
            with real.real_device():
                found = real.environment()
        except real.CannotCountError as error:
            raise CannotMeasureError(
                f"no real GPU can be measured here: {error}"
            ) from None
        self.device = f"{found.gpu}, CUDA {found.cuda}"

    def cannot_run(self, workload: Workload, point: Point) -> str | None:
        """It can if there are devices and memory enough."""
        wanted, there = workload.devices(point), torch.cuda.device_count()
        if wanted > there:
            return f"needs {wanted} devices, and this machine has {there}"
        wanted_bytes, bytes_there = (
            workload.memory(point) or 0,
            torch.cuda.mem_get_info()[1],
        )
        if wanted_bytes > bytes_there:
            return f"needs a device with {wanted_bytes} bytes of memory, and this one has {bytes_there}"
        return None

    @contextmanager
    def devices(
        self, number: int, capacity: int | None = None
    ) -> Iterator[simcuda.Gpu]:
        """Real devices; raises ``CannotMeasureError`` for too few, or if the profiler lost events."""
        try:
            with real.real_device(number, capacity=capacity) as gpu:
                yield gpu
        except real.CannotCountError as error:
            raise CannotMeasureError(str(error)) from None


def choose(name: str, compiling: Compiling = "eager") -> Meter:
    """The meter called ``name``; ``auto`` is a real GPU if one is usable, else the simulated device.

    ``compiling`` says what becomes of code for ``torch.compile`` on the simulated device.
    """
    if name not in METERS:
        raise CannotMeasureError(
            f"no meter is called {name!r}: one of {', '.join(METERS)}"
        )
    if name == "cuda":
        return CudaMeter()
    if name == "auto":
        with suppress(CannotMeasureError):
            return CudaMeter()
    return SimulatedMeter(compiling=compiling)


# The next functions may start CUDA, so commands call them in a process of their own.


def chosen_name(name: str) -> str:
    """The name of the meter that ``choose`` takes."""
    return choose(name).name


def torch_version() -> str:
    """The version of torch, without its build."""
    return torch.__version__.split("+")[0]


def warm_up(workload: Workload, point: Point, function: Function, device: str) -> None:
    """Run once on other data, so that first-use effects are over; how that ends does not matter."""
    inputs = arguments(workload, point, device, workload.seed + 1)
    with suppress(Exception):
        workload.read(function(*inputs))


def arguments(
    workload: Workload, point: Point, device: str, seed: int
) -> tuple[Any, ...]:
    """Fresh arguments, the same for every variant; also what ``build`` draws without its generator."""
    # ``torch.manual_seed`` seeds other accelerators too, which takes longer than building most arguments.
    torch.default_generator.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    built = workload.build(point, device, torch.Generator().manual_seed(seed))
    if not isinstance(built, tuple):
        raise TypeError(
            f"build must return a tuple of arguments, not {type(built).__name__}"
        )
    return built


def attempt(
    workload: Workload, function: Function, inputs: Sequence[Any], root: Path
) -> tuple[Any, str | None]:
    """Run the function; return what ``read`` gives, or the error in words. No traceback keeps tensors alive.

    All parts of the result are looked at: work that waits for that belongs to the run.

    Raises:
        CannotMeasureError: The code is still to be written.
    """
    try:
        return plain(workload.read(function(*inputs))), None
    except NotImplementedError as error:
        raise CannotMeasureError(describe(error, root)) from None
    except Exception as error:
        if is_out_of_host_memory(error):
            raise
        return None, describe(error, root)


@contextmanager
def steady_state() -> Iterator[None]:
    """Collect no garbage in the block, and put back settings of torch that a variant changes.

    What cycles keep alive stays alive, so that peaks do not depend on when the collector runs.
    """
    dtype, grad, threads = (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
    )
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.set_num_threads(threads)
