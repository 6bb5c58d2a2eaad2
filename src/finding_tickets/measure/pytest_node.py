"""Run one node of pytest and count what its tests cost, without their fixtures.

pytest is no dependency: only who points at a test needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import simcuda
from finding_tickets.measure.counting import measurement_of
from finding_tickets.measure.measurement import Measurement, Site
from finding_tickets.measure.places import describe
from finding_tickets.measure.report import CannotMeasureError, Run, WrongTargetError

LARGEST = {"largest_allocation", "peak_bytes", "peak_allocated_bytes", "host_peak_bytes", "raised"}
"""Metrics of several tests that do not add up: the largest counts."""

NOTHING_LEFT_BEHIND = ("-p", "no:cacheprovider")
AS_WRITTEN = ("--assert", "plain")
"""What pytest finds out about an assertion that fails, it finds out by waiting for tensors itself."""


def run_node(gpu: simcuda.Gpu, node: str, arguments: Sequence[str], root: Path) -> Run:
    """Run the tests of a node in this process, and count them as one run.

    Raises:
        WrongTargetError: There is no such node.
        CannotMeasureError: No test of it ran.
    """
    try:
        pytest: Any = importlib.import_module("pytest")
    except ImportError:
        raise WrongTargetError(f"{node} is a test, and pytest is not installed here") from None
    counting = _counting(pytest, gpu, root)
    code = pytest.main([*NOTHING_LEFT_BEHIND, *AS_WRITTEN, *arguments, node], plugins=[counting])
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED) and not counting.failures:
        raise WrongTargetError(f"pytest finds no test {node}")
    if not counting.runs:
        reasons = counting.failures or counting.skipped or [f"pytest ended with {int(code)}"]
        raise CannotMeasureError(f"no test ran: {'; '.join(dict.fromkeys(reasons))}")
    total = reduce(_together, counting.runs)
    failed = next(iter(counting.failures), None)
    return Run({}, total, failed)


def _counting(pytest: Any, gpu: simcuda.Gpu, root: Path) -> Any:
    """A plugin that counts every test, without its fixtures, and keeps how those ended that failed."""

    class Counting:
        def __init__(self) -> None:
            self.runs: list[Measurement] = []
            self.failures: list[str] = []
            self.skipped: list[str] = []

        @pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]  # pytest is loaded by its name
        def pytest_runtest_call(self) -> Generator[None, object, object]:
            before = gpu.live_bytes()
            try:
                with gpu.measure() as counted:
                    result = yield
            except pytest.skip.Exception:
                raise
            except BaseException:
                self._keep(counted, before, raised=True)
                raise
            self._keep(counted, before, raised=False)
            return result

        def _keep(self, counted: simcuda.Measurement, before: int, *, raised: bool) -> None:
            self.runs.append(measurement_of(counted, gpu.live_bytes() - before, raised=raised))

        def pytest_exception_interact(self, call: Any) -> None:
            self.failures.append(describe(call.excinfo.value, root))

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.skipped and isinstance(report.longrepr, tuple):
                self.skipped.append(str(report.longrepr[2]))

    return Counting()


def _together(one: Measurement, other: Measurement) -> Measurement:
    """Two tests as one run."""
    metrics = {
        name: max(value, other.metrics[name]) if name in LARGEST else value + other.metrics[name]
        for name, value in one.metrics.items()
    }
    return Measurement(
        metrics=metrics,
        sites=tuple(_summed([*one.sites, *other.sites])),
        unknown=tuple(sorted({*one.unknown, *other.unknown})),
        approximate=tuple(sorted({*one.approximate, *other.approximate})),
    )


def _summed(sites: Iterable[Site]) -> Iterable[Site]:
    counts: dict[tuple[str, int, str, str], int] = {}
    for site in sites:
        place = site.file, site.line, site.function, site.what
        counts[place] = counts.get(place, 0) + site.count
    return (Site(*place, count) for place, count in counts.items())
