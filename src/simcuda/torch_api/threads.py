"""Threads take part in the simulation, though torch watches one thread for itself.

Those that start during a simulation do, and whatever an executor is given to do then, also by threads that it
had before. From the first of them on, one operation is charged at a time. A thread that outlives the
simulation goes on without it.

Known limitations:
    A custom operation that waits for another thread to use the device waits for ever.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from concurrent.futures import thread as executors
from types import MethodType
from typing import Any

from simcuda.device.dispatch_key import watched
from simcuda.device.machine import Machine
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.patches import Patches

Function = Callable[..., Any]

FROM_OUTSIDE = (
    *("wait_for_stream", "wait_for_device", "wait_for_event", "empty_caches", "new_stream"),
    *("place", "place_on_host", "resized", "host_touches", "leave_backward"),
)
"""Methods of ``Machine`` that are called by others than the dispatcher too."""


class Threads:
    """Lets other threads take part.

    Args:
        machine: What they share.
        dispatcher: What is to see their operations.
    """

    def __init__(self, machine: Machine, dispatcher: Dispatcher) -> None:
        self._machine = machine
        self._dispatcher = dispatcher
        self._lock: threading.RLock | None = None
        self._here = threading.local()
        self._here.takes_part = True

    def install(self, patches: Patches) -> None:
        """Put everything in place."""
        start = _thread.start_new_thread

        def start_new_thread(function: Function, *how: Any) -> int:
            self._one_at_a_time()
            return start(self._taking_part(function), *how)

        thread: Any = threading.Thread
        work: Any = executors._WorkItem
        patches.set(_thread, start_new_thread=start_new_thread)
        patches.set(thread, _bootstrap_inner=self._taking_part(thread._bootstrap_inner))
        patches.set(work, __init__=self._announcing(work.__init__), run=self._taking_part(work.run))

    def let_go(self) -> None:
        """Leave the threads that are still running to themselves."""
        unwatched: Any = MethodType(_run_unwatched, self._dispatcher)
        self._dispatcher.run = unwatched  # type: ignore[method-assign]  # for this one alone

    def _announcing(self, original: Function) -> Function:
        def __init__(work: Any, *how: Any, **named: Any) -> None:  # noqa: N807 - the name that is replaced
            self._one_at_a_time()
            original(work, *how, **named)

        return __init__

    def _taking_part(self, function: Function) -> Function:
        def run(*args: Any, **kwargs: Any) -> Any:
            here = self._here
            if getattr(here, "takes_part", False):
                return function(*args, **kwargs)
            self._one_at_a_time()
            here.takes_part = True
            try:
                with watched():
                    return function(*args, **kwargs)
            finally:
                here.takes_part = False

        return run

    def _one_at_a_time(self) -> None:
        """Lock what threads share; one thread alone need not pay for that."""
        if self._lock is not None:
            return
        self._lock = lock = threading.RLock()
        machine, dispatcher = self._machine, self._dispatcher
        watched: Any = MethodType(_locked(type(dispatcher).run, lock), dispatcher)
        dispatcher.run = watched  # type: ignore[method-assign]  # for this one alone
        for name in FROM_OUTSIDE:
            setattr(machine, name, _locked(getattr(machine, name), lock))
        storages: Any = machine.storages
        storages._released = _locked(storages._released, lock)
        storages._gone = _locked(storages._forget, lock)


def _locked(function: Function, lock: threading.RLock) -> Function:
    def run(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return function(*args, **kwargs)

    return run


def _run_unwatched(_dispatcher: Dispatcher, operation: Any, args: Any, kwargs: Any) -> Any:
    return operation._op(*args, **kwargs)
