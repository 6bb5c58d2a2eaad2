"""The process that has torch loaded and forks a fresh one for every task; started by ``janitor.py``.

It reads a task as a line of JSON from stdin and writes a line to stdout when one begins and when it has
ended. Tasks begin in the order in which they came, each on a GPU of its own if it needs one. It runs no torch
op itself: a process forked after a parallel op hangs in the next one. When stdin ends it ends too, and the
janitor kills what still runs.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections import deque
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from finding_tickets.verify.supervise import die_with, kill_descendants, reap_orphans, supervise

CHUNK = 1 << 16


@dataclass(frozen=True)
class Running:
    """A supervisor at work: the task it was given and the pipe on which it tells how that ended."""

    task: dict[str, Any]
    pid: int
    pipe: int


def serve(most: int) -> None:
    """Run tasks, at most ``most`` at a time, until stdin ends."""
    reap_orphans()
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    waiting: deque[dict[str, Any]] = deque()
    running: dict[int, Running] = {}
    unread = b""
    while True:
        for key, _ in selector.select():
            if key.fd in running:
                selector.unregister(key.fd)
                _finish(running.pop(key.fd), running.values())
                continue
            if not (chunk := os.read(key.fd, CHUNK)):
                return
            *lines, unread = (unread + chunk).split(b"\n")
            waiting.extend(map(json.loads, lines))
        while waiting and len(running) < most:
            gpus = _free(waiting[0], running.values())
            if gpus is None:
                break
            started = _start({**waiting.popleft(), "gpus": gpus})
            running[started.pipe] = started
            selector.register(started.pipe, selectors.EVENT_READ)


def _free(task: dict[str, Any], running: Iterable[Running]) -> list[str] | None:
    """The GPUs that a task can have now, one of its own or all of them; None where it must wait."""
    taken = {gpu for each in running for gpu in each.task["gpus"]}
    free = [gpu for gpu in task["gpus"] if gpu not in taken]
    if task["alone"]:
        return free if len(free) == len(task["gpus"]) else None
    return free[:1] if free or not task["gpus"] else None


def _start(task: dict[str, Any]) -> Running:
    read, write = os.pipe()
    if pid := os.fork():
        os.close(write)
        _tell(id=task["id"], started=True)
        return Running(task, pid, read)
    try:
        os.write(write, supervise(task).encode())
        os._exit(0)
    finally:
        os._exit(1)


def _finish(done: Running, others: Collection[Running]) -> None:
    """Report the end of a task; a supervisor writes its few words at once, so one read gets them all."""
    reason = os.read(done.pipe, CHUNK).decode()
    os.close(done.pipe)
    _, status = os.waitpid(done.pid, 0)
    if status:
        reason = reason or "the process that watched over it was killed"
        kill_descendants(but=[process.pid for process in others])
    _tell(id=done.task["id"], started=False, reason=reason)


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
    serve(int(workers))
    os._exit(0)
