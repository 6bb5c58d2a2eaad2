"""Threads and processes that start during a simulation.

Torch's dispatch key applies to one thread. Here threads that start during a simulation take part too, those
that start after ``follow_threads``, and work given to an executor, also in its older threads. With more than
one thread operations are charged one at a time. A thread that outlives the simulation continues without it. A
forked process sees only the host, as it could not use CUDA's devices either.

Processes that are spawned have the simulated devices too. What they cost is not counted: a measurement is
marked if such a process uses a device.

Known limitations:
    A custom operation that waits for another thread to use the device deadlocks.
"""

from __future__ import annotations

import _thread
import multiprocessing.spawn
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import thread as executors
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

from simcuda.costs.call import all_tensors_in
from simcuda.device.dispatch_key import current_frames, register, wake, watched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.ledger import Ledger
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.patches import Patches, as_method, genuine

Function = Callable[..., Any]

# Methods of ``Machine`` that are called by others than the dispatcher too.
FROM_OUTSIDE = (
    *(
        "wait_for_stream",
        "wait_for_device",
        "wait_for_event",
        "poll",
        "empty_caches",
        "empty_host_cache",
    ),
    *(
        "new_stream",
        "place",
        "place_on_host",
        "resized",
        "host_touches",
        "leave_backward",
    ),
)

# Functions of C++ that start a thread.
STARTS = [
    name
    for name in ("start_new_thread", "start_new", "start_joinable_thread")
    if hasattr(_thread, name)
]

LISTENER = "execnet.gateway_base"

# A thread that does nothing wakes up now and then.
IDLE_SECONDS = 0.0002

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start method"
)

# The numbers of the threads that take part in any simulation.
_following: set[int] = set()

# The active dispatchers; in processes that are forked meanwhile they let only the host be used.
forking: list[Dispatcher] = []


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
        if len(current_frames()) > 1:
            self._lock_shared_state()

        def __init__(item: Any, *how: Any, **named: Any) -> None:  # noqa: N807 - the name that is replaced
            self._lock_shared_state()
            make_work(item, *how, **named)

        patches.set(
            work, __init__=__init__, run=as_method(partial(self._take_part, work.run))
        )

    def let_go(self) -> None:
        """Stop handling the threads that still run."""
        _following.discard(threading.get_ident())
        self._dispatcher.run = lambda operation, args, kwargs: operation._op(
            *args, **kwargs
        )

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
        machine = self._machine
        storages = self._machine.storages
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
    others = (
        each
        for each, frame in current_frames().items()
        if each not in _following and not _listens(frame)
    )
    return {thread: time.clock_gettime(clock(thread)) for thread in others}


def _listens(frame: FrameType | None) -> bool:
    """Return True if a thread is that by which a worker of pytest-xdist hears of its next test."""
    module = ""
    while frame:
        module, frame = frame.f_globals.get("__name__", ""), frame.f_back
    return module == LISTENER


def _start_in(patches: Patches, first: Callable[[], None] = lambda: None) -> None:
    """Let threads that start take part, after a call of ``first``."""

    def start(
        original: Function, function: Function, /, *how: Any, **named: Any
    ) -> Any:
        first()
        return original(partial(_follow, function), *how, **named)

    for name in STARTS:
        patches.redirect(
            getattr(_thread, name), partial(start, genuine(getattr(_thread, name)))
        )


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


def _locked(
    lock: threading.RLock, function: Function, /, *args: Any, **kwargs: Any
) -> Any:
    with lock:
        return function(*args, **kwargs)


def _forked() -> None:
    for dispatcher in forking:
        on_host: Any = partial(_run_on_host, dispatcher)
        dispatcher.run = on_host  # type: ignore[method-assign]  # for this one alone


def _run_on_host(
    dispatcher: Dispatcher,
    operation: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    # What has nothing to do with a device works as it does without a simulation.
    device = kwargs.get("device")
    devices = map(dispatcher._machine.storages.device_of, all_tensors_in(args, kwargs))
    if (
        dispatcher.destination.device not in (None, HOST)
        or (device is not None and device.type == "cuda")
        or any(index != HOST for index in devices)
    ):
        raise RuntimeError(BAD_FORK)
    return operation._op(*args, **kwargs)


os.register_at_fork(after_in_child=_forked)

SPAWNED = "a spawned process that uses a device"


@dataclass(eq=False)
class Children:
    """The spawned processes of a simulation, whose costs are not counted.

    Attributes:
        ledger: Marks what is measured while one of them uses a device.
        open_devices: Opens the same devices in a child; another process can load it.
        used: Called when this process starts another one.
        uses: A file that children make when they use a device. It has no number here: a program may close all
            numbers that it finds.
    """

    ledger: Ledger
    open_devices: Callable[[], AbstractContextManager[Any]]
    used: Callable[[], object] = lambda: None
    uses: Path = field(
        default_factory=lambda: Path(tempfile.gettempdir(), f"simcuda-{uuid4().hex}")
    )

    def install(self, patches: Patches) -> None:
        """Open the devices in what is spawned from now on."""
        spawn: Any = multiprocessing.spawn
        original, process = spawn.get_preparation_data, os.getpid()

        def get_preparation_data(name: str) -> Any:
            data = original(name)
            # A forked child has no devices to pass on.
            if os.getpid() == process:
                data["simcuda"] = _InChild(self.open_devices, self.uses)
                self.used()
            return data

        patches.set(spawn, get_preparation_data=get_preparation_data)

    def close(self) -> None:
        """Remove the file."""
        self.uses.unlink(missing_ok=True)

    def collect(self) -> None:
        """Mark the measurements under way if a child has used a device since the last call."""
        if self.uses.exists():
            self.close()
            self.ledger.doubt(SPAWNED)


@dataclass(frozen=True)
class _InChild:
    """Opens devices where it is loaded."""

    open_devices: Callable[[], AbstractContextManager[Any]]
    uses: Path

    def __reduce__(self) -> Any:
        return _open_in_child, (self.open_devices, self.uses)


# Keeps the devices of a child open.
_in_child = ExitStack()


def _open_in_child(
    open_devices: Callable[[], AbstractContextManager[Any]], uses: Path
) -> None:
    simulated = _in_child.enter_context(open_devices())
    tell = uses.touch
    # Whoever starts a process is taken to use a device: its parent does not hear of that one.
    simulated._children.used = tell
    machine = simulated._machine
    for name in ("malloc", "_waited"):
        setattr(machine, name, partial(_telling, tell, getattr(machine, name)))


def _telling(tell: Callable[[], object], function: Function, /, *args: Any) -> Any:
    tell()
    return function(*args)
