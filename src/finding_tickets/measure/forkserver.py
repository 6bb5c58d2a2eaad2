"""The process that has torch loaded and forks a fresh one for every task; started by ``janitor.py``.

It reads a task as a line of JSON from stdin and writes a line to stdout when one begins and when it has
ended. Tasks begin in the order in which they came, each on a GPU of its own if it needs one. It runs no torch
op itself: a process forked after a parallel op hangs in the next one. When stdin ends it ends too, and the
janitor kills what still runs.

What only some tasks need is not loaded here. For those another server is forked that loads it, once, and
serves them in the same way: what a task finds loaded does not depend on the tasks before it.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from finding_tickets.measure.supervise import die_with, kill_descendants, reap_orphans, supervise
from finding_tickets.measure.worker import close_inherited

CHUNK = 1 << 16
WATCHER_KILLED = "the process that watched over it was killed"


class Lines:
    """What arrives on a pipe, a line of JSON each."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self._unread = b""

    def read(self) -> list[dict[str, Any]] | None:
        """The lines that have arrived; None at the end."""
        if not (chunk := os.read(self.pipe, CHUNK)):
            return None
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Child:
    """A process that tells of tasks: one that watches over a single one, or a server that ``loads`` more.

    ``stdin`` is the pipe on which a server is given its ``tasks``, which are kept by their names.
    """

    pid: int
    stdin: int
    events: Lines
    loads: str
    tasks: set[str] = field(default_factory=set)


class Server:
    """Runs tasks, at most ``most`` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[dict[str, Any]] = deque()
        self._running: dict[str, dict[str, Any]] = {}
        self._children: dict[int, Child] = {}

    def serve(self) -> None:
        """Return when stdin ends."""
        reap_orphans()
        given = Lines(sys.stdin.fileno())
        self._selector.register(given.pipe, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd != given.pipe:
                    self._hear(self._children[key.fd])
                elif (tasks := given.read()) is None:
                    return
                else:
                    self._waiting.extend(tasks)
            self._begin()

    def _begin(self) -> None:
        """Begin the tasks whose turn it is."""
        while self._waiting and len(self._running) < self._most:
            gpus = _free(self._waiting[0], self._running.values())
            if gpus is None:
                return
            task = {**self._waiting.popleft(), "gpus": gpus}
            self._running[task["id"]] = task
            if loads := task["loads"]:
                child = self._that_loads(loads)
                _give(child, {**task, "loads": ""})
            else:
                child = self._child(partial(_watch, task))
                _tell(id=task["id"], started=True)
            child.tasks.add(task["id"])

    def _that_loads(self, loads: str) -> Child:
        """The server that has loaded this, or begins with it now."""
        known = (child for child in self._children.values() if child.loads == loads)
        return next(known, None) or self._child(partial(_serve_with, loads, self._most), loads)

    def _child(self, run: Callable[[], None], loads: str = "") -> Child:
        child = _forked(run, loads)
        self._children[child.events.pipe] = child
        self._selector.register(child.events.pipe, selectors.EVENT_READ)
        return child

    def _hear(self, child: Child) -> None:
        """Pass on what a child tells; the tasks of one that was killed have ended."""
        events = child.events.read()
        if events is None:
            events = self._end_of(child)
        for event in events:
            if not event["started"]:
                child.tasks.remove(event["id"])
                del self._running[event["id"]]
            _tell(**event)

    def _end_of(self, child: Child) -> list[dict[str, Any]]:
        """What there is to tell of the tasks of a child that has ended; nothing of them is left."""
        self._selector.unregister(child.events.pipe)
        del self._children[child.events.pipe]
        os.close(child.events.pipe)
        os.close(child.stdin)
        os.waitpid(child.pid, 0)
        if child.tasks:
            kill_descendants(but=[other.pid for other in self._children.values()])
        return [{"id": task, "started": False, "reason": WATCHER_KILLED} for task in child.tasks]


def _free(task: dict[str, Any], running: Iterable[dict[str, Any]]) -> list[str] | None:
    """The GPUs that a task can have now, one of its own or all of them; None where it must wait."""
    taken = {gpu for each in running for gpu in each["gpus"]}
    free = [gpu for gpu in task["gpus"] if gpu not in taken]
    if task["alone"]:
        return free if len(free) == len(task["gpus"]) else None
    return free[:1] if free or not task["gpus"] else None


def _forked(run: Callable[[], None], loads: str) -> Child:
    """A process that does this and ends; stdin and stdout are its pipes to this one."""
    stdin, given = os.pipe()
    heard, stdout = os.pipe()
    if pid := os.fork():
        os.close(stdin)
        os.close(stdout)
        return Child(pid, given, Lines(heard), loads)
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        close_inherited()
        run()
        os._exit(0)
    finally:
        os._exit(1)


def _watch(task: dict[str, Any]) -> None:
    _tell(id=task["id"], started=False, reason=supervise(task))


def _serve_with(loads: str, most: int) -> None:
    die_with(os.getppid(), signal.SIGKILL)
    module, _, function = loads.partition(":")
    # What cannot be loaded is missed by the task, which says so.
    with suppress(Exception):
        getattr(import_module(module), function)()
    _serve(most)


def _serve(most: int) -> None:
    # Collecting garbage in a fork would write to every page of what is loaded, and so copy it.
    gc.freeze()
    Server(most).serve()


def _give(server: Child, task: dict[str, Any]) -> None:
    # One that is gone has closed its stdout too, which is where that shows.
    with suppress(BrokenPipeError):
        os.write(server.stdin, json.dumps(task).encode() + b"\n")


def _tell(**event: object) -> None:
    # A caller that is gone has closed stdin too, which is where that shows.
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    die_with(os.getppid(), signal.SIGKILL)
    workers, *preload = sys.argv[1:]
    for name in preload:
        import_module(name)
    _serve(int(workers))
    os._exit(0)
