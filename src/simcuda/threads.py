"""Threads that are started during a simulation take part in it: dispatch modes hold for one thread each."""

from __future__ import annotations

import threading

from simcuda.dispatch import Dispatcher
from simcuda.patches import Patches

_run = threading.Thread.run


def install(patches: Patches, dispatcher: Dispatcher) -> None:
    """Let what a ``threading.Thread`` is given to run, executors included, run under the dispatch mode."""

    def run(thread: threading.Thread) -> None:
        with dispatcher:
            _run(thread)

    patches.set(threading.Thread, run=run)
