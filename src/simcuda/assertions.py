"""Limit in a test what a block of code may cost; a failure names the lines at fault."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from math import inf
from types import TracebackType
from typing import Any, Unpack

from simcuda import simulation
from simcuda.measurement import (
    METRICS,
    SYNCS,
    Gpu,
    Limits,
    Measurement,
    Range,
    Site,
    place,
    range_text,
    source,
)

BEHIND = {
    "syncs": SYNCS,
    "largest_allocation": ("allocations",),
    "peak_bytes": ("allocations",),
    "peak_allocated_bytes": ("allocations",),
    "retained_bytes": ("allocations",),
    "ooms": ("allocations",),
}
"""The name that sites have for a metric, if it is neither the metric's nor that without ``_bytes``."""

MOST_LINES = 10


def gpu_at_hand() -> AbstractContextManager[Gpu]:
    """The simulated device that is active, else the real one.

    Raises:
        RuntimeError: There is neither.
    """
    __tracebackhide__ = True  # pytest then points to the line that needs a device
    if simulated := simulation.active():
        return nullcontext(simulated)
    # Most tests run on simulated devices: the code for real ones is loaded only if it is needed.
    from simcuda import real

    if reason := real.why_not():
        raise RuntimeError(
            f"there is no device to count on: enter simcuda.device() first ({reason})"
        )
    return real.real_device()


def assert_no_syncs() -> AbstractContextManager[Measurement]:
    """Fail where the block makes the host wait for a device; short for ``assert_at_most(syncs=0)``."""
    return assert_at_most(syncs=0)


def assert_at_most(**limits: Unpack[Limits]) -> AbstractContextManager[Measurement]:
    """Fail where the block costs more than ``limits``, on the simulated device or on a real GPU.

    The block counts on the simulated device within ``simcuda.device()``, and on a real GPU outside it. The
    context yields the block's measurement. An exception of the block passes through, without a check.

    Raises:
        AssertionError: A limit is exceeded, or an operation of unknown cost ran.
        TypeError: There is no limit, or no metric of that name.
        ValueError: A limit is negative.
        RuntimeError: There is neither a simulated device nor a real one.
    """
    # Mistakes in the limits are reported here, before the block runs.
    if not limits:
        raise TypeError("name at least one limit, such as syncs=0")
    asked: dict[str, Any] = {**limits}
    for metric, limit in asked.items():
        if metric not in METRICS:
            raise TypeError(
                f"there is no metric {metric!r}; there are {', '.join(METRICS)}"
            )
        if not isinstance(limit, int) or limit < 0:
            raise ValueError(f"{metric}: {limit!r} is no limit; use a number from 0 on")
    return _AtMost(asked)


@dataclass
class _AtMost:
    """Not a generator: pytest is to point to the block, not into ``contextlib``."""

    limits: Mapping[str, int]

    def __enter__(self) -> Measurement:
        __tracebackhide__ = True  # pytest then points to the block
        # The measurement ends before the device is given back, whatever the block raises.
        with ExitStack() as stack:
            gpu = stack.enter_context(gpu_at_hand())
            self._cost = stack.enter_context(gpu.measure())
            self._block = stack.pop_all()
        return self._cost

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        self._block.__exit__(kind, error, trace)
        if error is None:
            check(self._cost, self.limits)


def check(
    cost: Measurement, limits: Mapping[str, int], laws: Mapping[str, str] | None = None
) -> None:
    """Raise ``AssertionError`` where a block that has ended cost more than its limits.

    ``laws`` has the text that a limit was computed from, by metric.
    """
    __tracebackhide__ = True
    if failure := "\n".join(_failures(cost, limits, laws or {})):
        raise AssertionError(failure)
    for metric in cost.ranges:
        limit, (count, bounds, _) = limits.get(metric, inf), _counted(cost, metric)
        # What holds by a modelled number alone is not passed over in silence.
        if bounds and limit < (inf if bounds[1] is None else bounds[1]):
            shown = f"~{count} {range_text(bounds)}"
            warnings.warn(
                f"{metric}: {shown}, at most {limit} allowed, by a modelled number",
                stacklevel=3,
            )


def _counted(
    cost: Measurement, metric: str
) -> tuple[int | None, Range | None, dict[str, int]]:
    """Return the count for a limit, its range if it is modelled, and what each region set apart."""
    kinds, count = (
        SYNCS if metric == "syncs" else (metric,),
        getattr(cost, metric, None),
    )
    apart = {
        reason: number
        for reason, sites in cost.allowed.items()
        if (number := sum(site.count for site in sites if site.what in kinds))
    }
    less, bounds = sum(apart.values()), cost.ranges.get(metric)
    if bounds:
        bounds = (
            max(0, bounds[0] - less),
            bounds[1] if bounds[1] is None else bounds[1] - less,
        )
    return None if count is None else count - less, bounds, apart


def _sites_behind(cost: Measurement, metric: str) -> Iterator[Site]:
    """The lines behind a metric, with what counts of them."""
    kinds = BEHIND.get(metric, (metric.removesuffix("_bytes"),))
    # A peak has no part that could be set apart.
    is_apart = "allocations" not in kinds or metric == "allocations"
    apart = Counter[Site]()
    for site in (each for sites in cost.allowed.values() if is_apart for each in sites):
        apart[replace(site, count=0)] += site.count
    for site in cost.sites:
        if site.what in kinds and (count := site.count - apart[replace(site, count=0)]):
            yield replace(site, count=count)


def _failures(
    cost: Measurement, limits: Mapping[str, int], laws: Mapping[str, str]
) -> Iterator[str]:
    """The failure message: each exceeded limit with the source lines behind it."""
    for metric, limit in limits.items():
        count, bounds, apart = _counted(cost, metric)
        said = f"{laws[metric]} = {limit}" if metric in laws else str(limit)
        if count is None:
            yield f"{metric}: not counted on this device, so the limit of {said} cannot be checked"
        elif count > limit:
            shown = f"~{count} {range_text(bounds)}" if bounds else count
            yield f"{metric}: {shown}, at most {said} allowed"
            # The line that waits most often comes first: it is the one to change.
            sites = sorted(_sites_behind(cost, metric), key=lambda site: -site.count)
            for site in sites[:MOST_LINES]:
                yield f"  {place(site)}: {site.count} {site.what}  {source(site)}".rstrip()
            if len(sites) > MOST_LINES:
                yield f"  and {len(sites) - MOST_LINES} more lines"
            yield from (
                f"  and allowed: {number}, {reason}" for reason, number in apart.items()
            )
    # An unknown operation makes every limit uncertain, also those that seem to hold.
    if cost.unknown:
        unknown = ", ".join(cost.unknown)
        yield f"whether the host waits in {unknown} is not known, so that no limit is sure to hold"
        yield "  keep it out of the block, or count what is known with gpu.measure()"
