"""Processes that are spawned during a simulation have the simulated devices too, and count for themselves.

As it ends, a child tells its parent what it has counted. The parent adds that to what it measures then, by
lines that name the child. One that has not ended by then, or was killed, has not told: the
measurement says so. What is forked cannot use CUDA's devices either; ``concurrency`` sees to that.
"""

from __future__ import annotations

import json
import multiprocessing.spawn
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from math import inf
from multiprocessing import util
from multiprocessing.connection import Connection, Pipe
from typing import Any

from simcuda.ledger import COUNTED, Ledger
from simcuda.measurement import METRICS, Measurement, Place
from simcuda.torch_api.patches import Patches

MOST_SITES = 200
"""Lines that a child tells of, those with the most counts: a pipe without a reader holds 64 KiB."""
MEMORY = ("largest_allocation", "peak_bytes", "peak_allocated_bytes", "host_peak_bytes")
_UNTOLD = dict.fromkeys(METRICS, (0, inf))
LAST_WORD = 100
"""Before queues and pools are taken down, which have lower priorities."""


@dataclass(eq=False)
class Children:
    """The spawned processes of a simulation.

    Attributes:
        ledger: Where their counts are added.
        open_devices: Opens the same devices in a child; another process can load it.
    """

    ledger: Ledger
    open_devices: Callable[[], AbstractContextManager[Any]]
    _running: list[tuple[str, Connection, Connection]] = field(default_factory=list)
    _killed: list[str] = field(default_factory=list)

    def install(self, patches: Patches) -> None:
        """Open the devices in what is spawned from now on."""
        spawn: Any = multiprocessing.spawn
        original, process = spawn.get_preparation_data, os.getpid()

        def get_preparation_data(name: str) -> Any:
            data = original(name)
            # A forked child has no devices to pass on.
            if os.getpid() == process:
                self._listen()
                reader, writer = Pipe(duplex=False)
                self._running.append((name, reader, writer))
                data["simcuda"] = _InChild(self.open_devices, writer)
            return data

        patches.set(spawn, get_preparation_data=get_preparation_data)

    def collect(self) -> None:
        """Add what those that have ended told, and mark the measurements for the others."""
        self._listen()
        for name in (*(name for name, _, _ in self._running), *self._killed):
            self.ledger.doubt(f"process {name}, which has not told what it counted", _UNTOLD)
        self._killed.clear()

    def _listen(self) -> None:
        for child in self._running[:]:
            name, reader, writer = child
            # The child has its own by now: after it, there is nothing to hear.
            writer.close()
            if not reader.poll():
                continue
            self._running.remove(child)
            try:
                self._add(name, json.loads(reader.recv_bytes()))
            except (EOFError, ValueError, TypeError, LookupError):
                # Nothing that a child tells makes counts fewer: code of the user runs in it.
                self._killed.append(name)
            reader.close()

    def _add(self, name: str, told: dict[str, Any]) -> None:
        counts = {what: int(told["counts"][what]) for what in COUNTED}
        sites: dict[Place, int] = {
            (str(file), int(line), str(function), str(what), str(process) or name): int(count)
            for file, line, function, what, process, count in told["sites"]
        }
        # What is modelled there is so here. Its memory is on the same devices; nobody knows when.
        slack = {metric: (float(below), float(above)) for metric, (below, above) in told["slack"].items()}
        slack |= {metric: (0.0, float(told[metric])) for metric in MEMORY}
        if min(*counts.values(), *sites.values(), *(bound for both in slack.values() for bound in both)) < 0:
            raise ValueError(f"{name} has counted less than nothing")
        self.ledger.add(counts, sites)
        for operation in told["unknown"]:
            self.ledger.doubt(operation)
        for operation in told["approximate"]:
            self.ledger.doubt(operation, {})
        if more := {metric: slack[metric] for metric in METRICS if any(slack.get(metric, ()))}:
            self.ledger.doubt(f"process {name}", more)


@dataclass(frozen=True)
class _InChild:
    """Opens devices where it is loaded."""

    open_devices: Callable[[], AbstractContextManager[Any]]
    writer: Connection

    def __reduce__(self) -> Any:
        return _open_in_child, (self.open_devices, self.writer)


def _open_in_child(open_devices: Callable[[], AbstractContextManager[Any]], writer: Connection) -> None:
    stack = ExitStack()
    measurement = stack.enter_context(stack.enter_context(open_devices()).measure())
    util.Finalize(None, _tell, (stack, measurement, writer), exitpriority=LAST_WORD)


def _tell(stack: ExitStack, measurement: Measurement, writer: Connection) -> None:
    stack.close()
    heaviest = sorted(measurement.sites, key=lambda site: -site.count)[:MOST_SITES]
    told = {
        "counts": {what: getattr(measurement, what) for what in COUNTED},
        "sites": [
            [each.file, each.line, each.function, each.what, each.process, each.count] for each in heaviest
        ],
        "slack": measurement._slack,
        "unknown": measurement.unknown,
        "approximate": measurement.approximate,
        **{metric: getattr(measurement, metric) for metric in MEMORY},
    }
    writer.send_bytes(json.dumps(told).encode())
