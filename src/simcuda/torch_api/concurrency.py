"""Threads and processes that start during a simulation.

Torch's dispatch key applies to one thread. Here threads that start during a simulation take part too, those
that start after ``follow_threads``, and work given to an executor, also in its older threads. With more than
one thread operations are charged one at a time. A thread that outlives the simulation continues without it. A
forked process sees only the host, as it could not use CUDA's devices either.

Processes that are spawned have the simulated devices too, and count for themselves. As it ends, a child tells
its parent what it has counted. The parent adds that to what it measures then, by lines that name the child.
One that has not ended by then, or was killed, has not told: the measurement says so.

Known limitations:
    A custom operation that waits for another thread to use the device deadlocks.
"""

from __future__ import annotations

import _thread
import json
import multiprocessing.spawn
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import thread as executors
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import inf
from multiprocessing import util
from multiprocessing.connection import Connection, Pipe
from types import FrameType
from typing import Any

from simcuda.cost.call import all_tensors_in
from simcuda.device.dispatch_key import register, wake, watched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.ledger import COUNTED, Ledger
from simcuda.measurement import METRICS, Measurement, Place
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.patches import Patches, as_method, genuine

Function = Callable[..., Any]

FROM_OUTSIDE = (
    *("wait_for_stream", "wait_for_device", "wait_for_event", "empty_caches", "empty_host_cache"),
    *("new_stream", "place", "place_on_host", "resized", "host_touches", "leave_backward"),
)
"""Methods of ``Machine`` that are called by others than the dispatcher too."""

STARTS = [
    name for name in ("start_new_thread", "start_new", "start_joinable_thread") if hasattr(_thread, name)
]
"""Functions of C++ that start a thread."""

LISTENER = "execnet.gateway_base"

IDLE_SECONDS = 0.0002
"""A thread that does nothing wakes up now and then."""

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start method"
)

_following: set[int] = set()
"""The numbers of the threads that take part in any simulation."""

forking: list[Dispatcher] = []
"""The active dispatchers; in processes that are forked meanwhile they let only the host be used."""


@dataclass(eq=False)
class Threads:
    """Lets other threads take part: they share the machine, and the dispatcher handles their operations."""

    _machine: Machine
    _dispatcher: Any
    _lock: threading.RLock | None = None

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        work: Any = executors._WorkItem
        make_work = work.__init__
        _start_in(patches, self._lock_shared_state)
        _following.add(threading.get_ident())
        # A thread that is there already may use the machine too.
        if len(sys._current_frames()) > 1:
            self._lock_shared_state()

        def __init__(item: Any, *how: Any, **named: Any) -> None:  # noqa: N807 - the name that is replaced
            self._lock_shared_state()
            make_work(item, *how, **named)

        patches.set(work, __init__=__init__, run=as_method(partial(self._take_part, work.run)))

    def let_go(self) -> None:
        """Stop handling the threads that still run."""
        _following.discard(threading.get_ident())
        self._dispatcher.run = lambda operation, args, kwargs: operation._op(*args, **kwargs)

    def _take_part(self, function: Function, /, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() not in _following:
            self._lock_shared_state()
        return _follow(function, *args, **kwargs)

    def _lock_shared_state(self) -> None:
        """Let in one thread at a time; a single thread does not pay for the lock."""
        # What the other thread puts on a device, this one may use.
        wake()
        if self._lock is not None:
            return
        self._lock = lock = threading.RLock()
        machine, storages = self._machine, self._machine.storages
        self._dispatcher.run = partial(_locked, lock, self._dispatcher.run)
        # Only on this machine: its methods hide those of the class.
        for name in FROM_OUTSIDE:
            setattr(machine, name, partial(_locked, lock, getattr(machine, name)))
        storages._released = partial(_locked, lock, storages._released)
        storages._gone = partial(_locked, lock, storages._forget)


def follow_threads() -> None:
    """Let threads that start from now on take part in the simulations of this process that begin later."""
    register()
    _start_in(Patches())


def busy_seconds() -> dict[int, float]:
    """The processor time of each of Python's threads that takes no part in a simulation, by its number."""
    clock = getattr(time, "pthread_getcpuclockid", lambda _: time.CLOCK_MONOTONIC)
    frames = sys._current_frames()
    others = [thread for thread in frames if thread not in _following and not _listens(frames[thread])]
    return {thread: time.clock_gettime(clock(thread)) for thread in others}


def _listens(frame: FrameType | None) -> bool:
    """Whether a thread is that by which a worker of pytest-xdist hears of its next test."""
    module = ""
    while frame:
        module, frame = frame.f_globals.get("__name__", ""), frame.f_back
    return module == LISTENER


def _start_in(patches: Patches, first: Callable[[], None] = lambda: None) -> None:
    """Let threads that start take part, after a call of ``first``."""

    def start(original: Function, function: Function, /, *how: Any, **named: Any) -> Any:
        first()
        return original(partial(_follow, function), *how, **named)

    for name in STARTS:
        patches.redirect(getattr(_thread, name), partial(start, genuine(getattr(_thread, name))))


def _follow(function: Function, /, *args: Any, **kwargs: Any) -> Any:
    thread = threading.get_ident()
    if thread in _following:
        return function(*args, **kwargs)
    _following.add(thread)
    try:
        with watched():
            return function(*args, **kwargs)
    finally:
        _following.discard(thread)


def _locked(lock: threading.RLock, function: Function, /, *args: Any, **kwargs: Any) -> Any:
    with lock:
        return function(*args, **kwargs)


def _forked() -> None:
    for dispatcher in forking:
        on_host: Any = partial(_run_on_host, dispatcher)
        dispatcher.run = on_host  # type: ignore[method-assign]  # for this one alone


def _run_on_host(
    dispatcher: Dispatcher, operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    # What has nothing to do with a device works as it does without a simulation.
    device = kwargs.get("device")
    tags = [dispatcher._of(tensor) for tensor in all_tensors_in(args, kwargs)]
    if (
        dispatcher.destination.device not in (None, HOST)
        or (device is not None and device.type == "cuda")
        or any(tag is not None and tag.device != HOST for tag in tags)
    ):
        raise RuntimeError(BAD_FORK)
    return operation._op(*args, **kwargs)


os.register_at_fork(after_in_child=_forked)

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
