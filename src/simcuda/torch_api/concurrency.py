"""Threads and processes that start during a simulation.

Torch's dispatch key applies to one thread. Here threads that start during a simulation take part too, and so
does work given to an executor, also in its older threads. From then on operations are charged one at a time.
A thread that outlives the simulation continues without it. A forked process sees only the host, as it could
not use CUDA's devices either.

Known limitations:
    A custom operation that waits for another thread to use the device deadlocks.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import thread as executors
from contextlib import contextmanager
from functools import partial
from typing import Any

from simcuda.cost.call import all_tensors_in
from simcuda.device.dispatch_key import watched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.patches import Patches, as_method

Function = Callable[..., Any]

FROM_OUTSIDE = (
    *("wait_for_stream", "wait_for_device", "wait_for_event", "empty_caches", "new_stream"),
    *("place", "place_on_host", "resized", "host_touches", "leave_backward"),
)
"""Methods of ``Machine`` that are called by others than the dispatcher too."""

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start method"
)

_forking: list[Dispatcher] = []
"""The active dispatchers; a forked child has its own list."""


class Threads:
    """Lets other threads take part.

    Args:
        machine: What they share.
        dispatcher: Handles their operations.
    """

    def __init__(self, machine: Machine, dispatcher: Dispatcher) -> None:
        self._machine = machine
        self._dispatcher: Any = dispatcher
        self._lock: threading.RLock | None = None
        self._here = threading.local()
        self._here.takes_part = True

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        thread: Any = threading.Thread
        work: Any = executors._WorkItem
        start, make_work = _thread.start_new_thread, work.__init__

        def start_new_thread(function: Function, *how: Any) -> int:
            # From now on more than one thread may use the machine.
            self._lock_shared_state()
            return start(partial(self._take_part, function), *how)

        def __init__(item: Any, *how: Any, **named: Any) -> None:  # noqa: N807 - the name that is replaced
            self._lock_shared_state()
            make_work(item, *how, **named)

        patches.set(_thread, start_new_thread=start_new_thread)
        patches.set(thread, _bootstrap_inner=as_method(partial(self._take_part, thread._bootstrap_inner)))
        patches.set(work, __init__=__init__, run=as_method(partial(self._take_part, work.run)))

    def let_go(self) -> None:
        """Stop handling the threads that still run."""
        self._dispatcher.run = lambda operation, args, kwargs: operation._op(*args, **kwargs)

    def _take_part(self, function: Function, /, *args: Any, **kwargs: Any) -> Any:
        here = self._here
        if getattr(here, "takes_part", False):
            return function(*args, **kwargs)
        self._lock_shared_state()
        here.takes_part = True
        try:
            with watched():
                return function(*args, **kwargs)
        finally:
            here.takes_part = False

    def _lock_shared_state(self) -> None:
        """Let in one thread at a time; a single thread does not pay for the lock."""
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


def _locked(lock: threading.RLock, function: Function, /, *args: Any, **kwargs: Any) -> Any:
    with lock:
        return function(*args, **kwargs)


@contextmanager
def refused_in_children(dispatcher: Dispatcher) -> Iterator[None]:
    """Let processes that are forked in this block see only the host.

    Args:
        dispatcher: What runs the operations of this process.
    """
    _forking.append(dispatcher)
    try:
        yield
    finally:
        _forking.remove(dispatcher)


def _forked() -> None:
    for dispatcher in _forking:
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
